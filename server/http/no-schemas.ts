/** Procedures check what comes in and goes out; Fastify's own compilers, never needed, take long to load. */
export const NO_SCHEMAS = {
  schemaController: { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } },
}

function refuse(): never {
  throw new Error('a route has a schema of its own: its procedure must have it')
}
