import type { AppRouter } from '../../server/http/router.ts'

export type { AppRouter }

type Routers = AppRouter['_def']['record']

/** The type, input and output of every procedure. In the package, scripts/client-api.ts writes them out with their descriptions. */
export type Api = {
  [Group in keyof Routers]: { [Name in keyof Routers[Group]]: Definition<Routers[Group][Name]> }
}

type Definition<Procedure> = Procedure extends {
  _def: { type: infer Type; $types: { input: infer Input; output: infer Output } }
}
  ? { type: Type; input: Input; output: Output extends AsyncIterable<infer Event> ? Event : Output }
  : never
