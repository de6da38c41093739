"""The original's module of this name, for scripts that import from it and for its command line."""

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

if __name__ == "__main__":
    main()
