"""The original's module of this name, for scripts that import from it; everything is in the package."""

# ruff: noqa: F401 - imported for others

from agentclinic import (
    DoctorAgent,
    MeasurementAgent,
    PatientAgent,
    ScenarioLoaderMedQA,
    ScenarioLoaderMedQAExtended,
    ScenarioLoaderMIMICIV,
    ScenarioLoaderNEJM,
    ScenarioLoaderNEJMExtended,
    ScenarioMedQA,
    ScenarioMedQAExtended,
    ScenarioMIMICIV,
    ScenarioNEJM,
    ScenarioNEJMExtended,
    compare_results,
    load_llm_config,
    main,
    query_model,
    set_llm_config,
)
