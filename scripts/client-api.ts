import { z } from 'zod'
import type { JsonSchema } from '../server/http/rest-input.ts'
import { appRouter } from '../server/http/router.ts'
import { type ProcedureRecord, proceduresOf } from '../server/platform/api/procedure.ts'
import { liveEvent } from '../shared/schemas/summaries.ts'

/** The router as `@trpc/client` reads it, without a type of the service or of `@trpc/server`. */
const APP_ROUTER = `
/** For projects that have \`@trpc/client\`: \`createTRPCClient<AppRouter>\`. */
export interface AppRouter {
  _def: {
    _config: {
      $types: { ctx: object; meta: object; errorShape: ErrorShape; transformer: false }
      transformer: any
      errorFormatter: any
      allowOutsideOfServer: boolean
      isServer: boolean
      isDev: boolean
      pathSeparator: any
    }
    router: true
    procedures: Procedures
    record: Procedures
    lazy: {}
  }
  createCaller: any
}

interface ErrorShape {
  code: any
  message: string
  data: { code: string; httpStatus: number; path?: string; problem: Problem }
}

type Procedures = { [Group in keyof Api]: { [Name in keyof Api[Group]]: Procedure<Api[Group][Name]> } }

type Procedure<Definition> = Definition extends { type: infer Type; input: infer Input; output: infer Output }
  ? {
      _def: {
        $types: { input: Input; output: Output; errorShape: ErrorShape }
        procedure: true
        type: Type
        meta: any
        experimental_caller: boolean
        inputs: any[]
      }
      meta: any
      (options: any): Promise<any>
    }
  : never
`

type Named = Map<string, string>

/**
 * The declarations that the client package has in place of shared/client/api.ts: type, input and output of each procedure, and the
 * named schemas, with the descriptions of the API reference.
 */
export function clientApi(): string {
  const named: Named = new Map()
  const groups = Map.groupBy(proceduresOf(appRouter), ({ name }) => name.split('.', 1)[0] ?? '')
  const api = [...groups].map(([group, procedures]) => {
    const members = procedures.map((procedure) => procedureOf(procedure, named))
    return `  ${group}: {\n${members.join('\n')}\n  }\n`
  })
  const types = [...named].map(
    ([name, text]) =>
      `export ${text.startsWith('{') ? 'interface' : 'type'} ${name} ${text.startsWith('{') ? '' : '= '}${text}\n`,
  )
  return [
    "import type { Problem } from '../error-codes.ts'\n",
    `/** The type, input and output of every procedure. */\nexport interface Api {\n${api.join('')}}\n`,
    ...types,
    APP_ROUTER.trimStart(),
  ].join('\n')
}

function procedureOf({ name, type, meta, inputs: [input], output }: ProcedureRecord, named: Named): string {
  const { summary, description, callers, errors = [] } = meta
  const roles = callers === 'public' ? 'Public.' : `Roles: ${callers.join(', ')}.`
  const refusals = errors.length > 0 && `Refuses with ${errors.map((code) => `\`${code}\``).join(', ')}.`
  const text = [`${summary}.`, description, [roles, refusals].filter(Boolean).join(' ')].filter(Boolean)
  const answer =
    type === 'subscription'
      ? `{\n${comment('Identifies the event when a stream is continued.', '        ')}\n        id: string\n        data: ${typeOf(liveEvent, 'output', named)}\n      }`
      : typeOf(output, 'output', named)
  return [
    comment(text.join('\n\n'), '    '),
    `    ${name.slice(name.indexOf('.') + 1)}: {`,
    `      type: '${type}'`,
    `      input: ${input === undefined ? 'void' : typeOf(input, 'input', named)}`,
    `      output: ${answer}`,
    '    }',
  ].join('\n')
}

function typeOf(schema: unknown, io: 'input' | 'output', named: Named): string {
  if (!(schema instanceof z.ZodType)) throw new Error('an input or output has no schema')
  if (schema instanceof z.ZodVoid) return 'void'
  const { $defs = {}, ...own } = z.toJSONSchema(schema, { io }) as JsonSchema
  for (const [name, definition] of Object.entries($defs)) {
    const text = textOf(definition, '')
    if ((named.get(name) ?? text) !== text) throw new Error(`two schemas have the name ${name}`)
    named.set(name, text)
  }
  const isOptional = io === 'input' && schema.safeParse(undefined).success
  return `${textOf(own, '      ')}${isOptional ? ' | undefined' : ''}`
}

/** A JSON schema as a type, in a declaration that is indented so far. */
function textOf(schema: JsonSchema, indent: string): string {
  const { $ref, anyOf, oneOf, type, items, properties, additionalProperties } = schema
  if ($ref) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const options = anyOf ?? (oneOf as JsonSchema[] | undefined)
  if (options) return options.map((option) => textOf(option, indent)).join(' | ')
  if (Array.isArray(type)) return type.map((one) => textOf({ ...schema, type: one }, indent)).join(' | ')
  if (type === 'integer') return 'number'
  if (type === 'array') return `Array<${textOf(items ?? {}, indent)}>`
  if (type !== 'object') return type ?? 'unknown'
  if (properties && Object.keys(properties).length > 0) return membersOf(schema, properties, indent)
  return additionalProperties === false
    ? 'Record<string, never>'
    : `Record<string, ${textOf((additionalProperties ?? {}) as JsonSchema, indent)}>`
}

function membersOf(
  { required = [] }: JsonSchema,
  properties: Record<string, JsonSchema>,
  indent: string,
): string {
  const inner = `${indent}  `
  const members = Object.entries(properties).map(([name, schema]) => {
    const key = /^[a-z_]\w*$/i.test(name) ? name : JSON.stringify(name)
    const given = schema.default === undefined ? '' : `Default: \`${JSON.stringify(schema.default)}\`.`
    const text = [schema.description, given].filter(Boolean).join(' ')
    const type = textOf(schema, inner)
    const member = required.includes(name) ? `${key}: ${type}` : `${key}?: ${type} | undefined`
    return `${text && `${comment(text, inner)}\n`}${inner}${member}\n`
  })
  return `{\n${members.join('')}${indent}}`
}

function comment(text: string, indent: string): string {
  const lines = text.replaceAll('*/', '*\\/').split('\n')
  if (lines.length === 1) return `${indent}/** ${lines[0]} */`
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`].join('\n')
}
