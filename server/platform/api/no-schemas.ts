/** Options of a Fastify server whose routes have no schemas: the compilers for them load slowly and are never needed. */
export const NO_SCHEMAS = {
  schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
}

function refuseSchema(): never {
  throw new Error('put the schema on the procedure, not on the route')
}
