"""The original's module of this name, for scripts that import from it and for its command line."""

# ruff: noqa: F401 - imported for others

from agentclinic import (
    CostEstimatorAgent,
    DifferentialDiagnosisEngine,
    DoctorAgent,
    MeasurementAgent,
    PatientAgent,
    ScenarioLoaderMedQA,
    ScenarioLoaderMedQAExtended,
    ScenarioLoaderMIMICIV,
    ScenarioLoaderNEJM,
    ScenarioLoaderNEJMExtended,
    ScenarioLoaderOSCE,
    ScenarioMedQA,
    ScenarioMedQAExtended,
    ScenarioMIMICIV,
    ScenarioMIMICIVQA,
    ScenarioNEJM,
    ScenarioNEJMExtended,
    ScenarioOSCE,
    compare_results,
    get_openai_client,
    init_openai_client,
    load_llm_config,
    load_prompts_json,
    main,
    query_model,
    set_llm_config,
)

if __name__ == "__main__":
    main()
