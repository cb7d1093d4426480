"""Operations for agents of other programs: LangChain tools and middleware, and an MCP server."""
