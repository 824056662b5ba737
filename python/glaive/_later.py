"""Methods of the LanceDB API that later releases bring; they raise NotImplementedError for now."""

TABLE = (
    "create_index_async drop_index function_errors tokenize "
    "wait_for_index"
).split()
TABLE_WARM = "prewarm_data prewarm_index".split()
TABLE_SYNC = "create_fts_index create_index create_scalar_index infer_tokenizer_configs".split()

DATABASE = (
    "alter_secret cancel_job create_function_async create_materialized_view create_materialized_view_async "
    "create_secret create_view describe_query describe_secret describe_view drop_function "
    "drop_function_async drop_materialized_view drop_materialized_view_async drop_secret drop_view drop_view_async "
    "execute_query execute_query_async get_function list_functions list_jobs list_materialized_views list_secrets "
    "list_views namespace_client open_job open_materialized_view pause_job resume_job"
).split()
