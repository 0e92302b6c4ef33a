import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import type { AnyRouter } from '@trpc/server'
import { z } from 'zod'
import type { ErrorCode } from '../../../shared/error-codes.ts'
import { NOT_AN_ID, problem, role } from '../../../shared/schemas/common.ts'
import { IDEMPOTENCY_HEADER } from '../../platform/api/idempotency.ts'
import {
  type DeclaredMeta,
  NOT_WITH_KEY,
  type ProcedureRecord,
  proceduresOf,
  type RestRoute,
  routesOf,
  SETUP_ONLY,
} from '../../platform/api/procedure.ts'
import { type InputShape, inputShapeOf, type JsonSchema, takesBody } from '../rest-input.ts'
import { EDGE_PATHS, parameter, SECURITY_SCHEMES } from './edge-operations.ts'
import { EXAMPLES, exampleOf, nameOf } from './examples.ts'
import {
  exampleProblem,
  factsFrom,
  type ProblemFacts,
  problemResponses,
  RATE_LIMIT,
} from './problem-responses.ts'

const textHeader = (description: string, example: string) => ({
  description,
  required: true,
  schema: { type: 'string' },
  example,
})

/** The groups of operations, in the order of the marketplace's story: the order of the API reference. */
const TAGS = [
  {
    name: 'auth',
    description:
      'Register, log in, change the password; sessions, API keys and the second factor. Registering returns the first token.',
  },
  {
    name: 'users',
    description: 'The account of the caller: name, balance, payout destination, billing account.',
  },
  { name: 'stores', description: "A merchant's connected Shopify stores and the secrets of their webhooks." },
  {
    name: 'offers',
    description: "Merchants' products that creators apply to promote, with their commission.",
  },
  {
    name: 'applications',
    description: "Creators' applications to offers, and merchants' decisions on them.",
  },
  {
    name: 'links',
    description: 'Affiliate links. Approving an application creates one and locks its terms.',
  },
  { name: 'redirect', description: 'Affiliate links as visitors open them.' },
  { name: 'sales', description: 'Orders that stores reported: accepted, or rejected with a reason.' },
  {
    name: 'pendingOrders',
    description: 'Orders that were placed and wait for their payment, such as cash on delivery.',
  },
  { name: 'billing', description: "Merchants' billing cycles: commission and fees, invoiced once a cycle." },
  { name: 'payouts', description: 'Payments to creators, from what merchants paid.' },
  { name: 'summaries', description: "The caller's figures on one page." },
  { name: 'admin', description: 'Moderation: flags, vetting of offers, suspensions.' },
  { name: 'jobs', description: 'Exports to CSV or NDJSON files.' },
  {
    name: 'webhooks',
    description: "The caller's own endpoints, which events are sent to, and the log of their deliveries.",
  },
  { name: 'incoming', description: 'Events from stores and the payment processor, verified by signature.' },
  { name: 'operation', description: 'For operators of the service: health, readiness, metrics.' },
]

/** The OpenAPI 3.1 document: every procedure with a REST route, and the routes that are not procedures. */
export function openApiDocument(appRouter: AnyRouter, serverUrl: string): Record<string, unknown> {
  const schemas: Record<string, JsonSchema> = {}
  schemaOf(problem, 'output', schemas)
  const paths: Paths = {}
  for (const procedure of proceduresOf(appRouter)) {
    for (const rest of routesOf(procedure)) {
      // Generators refuse or drop the body of a DELETE.
      if (rest.method === 'DELETE' && takesBody(rest)) continue
      const path = rest.path.replace(/:([A-Za-z0-9_]+)/g, '{$1}')
      paths[path] = {
        ...paths[path],
        [rest.method.toLowerCase()]: operationOf(procedure, rest, schemas),
      }
    }
  }
  for (const [name, example] of Object.entries({
    ...EXAMPLES.components,
    Problem: exampleProblem('not_found'),
  })) {
    if (schemas[name]) schemas[name].examples = [example]
  }
  return withNullableTypes({
    openapi: '3.1.0',
    info: infoOf(serverUrl),
    servers: [{ url: serverUrl }],
    tags: TAGS,
    security: [{ bearer: [] }],
    paths: inOrderOfTags({ ...paths, ...EDGE_PATHS }),
    components: { securitySchemes: SECURITY_SCHEMES, schemas },
  })
}

/**
 * Says `type: [.., 'null']` in place of `anyOf` with null, which generators read badly. Named schemas and enums, whose null they read
 * badly otherwise, stay in `anyOf`.
 */
function withNullableTypes(document: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(document), (_, value: JsonSchema | null) => {
    const [only, none, ...more] = Array.isArray(value?.anyOf) ? value.anyOf : []
    if (!value || typeof only?.type !== 'string' || only.enum || none?.type !== 'null' || more.length > 0)
      return value
    const { anyOf, ...outer } = value
    return { ...only, ...outer, type: [only.type, 'null'] }
  })
}

type Paths = Record<string, Record<string, { tags: string[] }>>

/** Paths by the tag of their first operation. Throws for a tag without a description. */
function inOrderOfTags(paths: Paths): Paths {
  const names = TAGS.map(({ name }) => name)
  const placeOf = (operations: Paths[string]) => {
    const [tag = ''] = Object.values(operations)[0]?.tags ?? []
    const place = names.indexOf(tag)
    if (place < 0) throw new Error(`the tag ${tag} has no description; add it to TAGS`)
    return place
  }
  return Object.fromEntries(Object.entries(paths).sort(([, a], [, b]) => placeOf(a) - placeOf(b)))
}

function infoOf(serverUrl: string): Record<string, unknown> {
  const file = findPackageJSON(import.meta.url)
  if (!file) throw new Error('package.json is missing')
  const { version, license } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  return {
    title: 'Affiliate offer marketplace',
    version,
    license: { name: license, identifier: license },
    description: introduction(serverUrl),
  }
}

/** The text above the operations, in Markdown. Links are relative to the page that shows it, `/docs`. */
function introduction(serverUrl: string): string {
  return readFileSync(new URL('../pages/introduction.md', import.meta.url), 'utf8')
    .replace('SERVER_URL', () => serverUrl)
    .replace('REGISTRATION', () => JSON.stringify(EXAMPLES.bodies['auth.register']))
}

function operationOf(
  procedure: ProcedureRecord,
  rest: RestRoute,
  schemas: Record<string, JsonSchema>,
): { tags: string[] } & Record<string, unknown> {
  const { meta } = procedure
  const shape = inputShapeOf(procedure, rest)
  const body = bodyOf(procedure.name, shape, schemas)
  return {
    operationId: procedure.name,
    tags: procedure.name.split('.', 1),
    summary: meta.summary,
    description: [meta.description, callersText(procedure)].filter(Boolean).join('\n\n'),
    security: securityOf(meta),
    parameters: [
      ...parametersOf(shape, rest, schemas),
      ...(rest.shared !== undefined ? [IF_NONE_MATCH] : []),
      ...(meta.creates ? [IDEMPOTENCY_KEY] : []),
    ],
    ...(body && { requestBody: body }),
    responses: {
      [String(rest.status ?? 200)]: successOf(procedure, rest, schemas),
      ...(rest.shared !== undefined && { 304: NOT_MODIFIED }),
      ...problemResponses(codesOf(meta, { hasBody: body !== null }), factsOf(meta, shape, rest)),
    },
  }
}

function securityOf({ callers, acceptsToken, sessionOnly }: DeclaredMeta): Record<string, string[]>[] {
  if (callers === 'public') return acceptsToken ? [{}, ...TOKEN_OR_KEY] : []
  const haveKeys = callers.some((caller) => caller !== 'admin')
  return haveKeys && !sessionOnly ? TOKEN_OR_KEY : [{ bearer: [] }]
}

const TOKEN_OR_KEY: Record<string, string[]>[] = [{ bearer: [] }, { apiKey: [] }]

/** The codes that an operation can answer with: its own, and those of its input, callers and limits. */
function codesOf(meta: DeclaredMeta, facts: { hasBody: boolean }): ErrorCode[] {
  return [
    'validation_failed',
    ...(meta.callers === 'public' ? [] : (['unauthenticated'] as const)),
    ...(facts.hasBody ? (['malformed_json', 'payload_too_large', 'unsupported_media_type'] as const) : []),
    // Another role, an API key, or an admin who has to set up a second factor.
    ...(meta.callers === 'public' ? [] : (['forbidden'] as const)),
    ...(meta.errors ?? []),
    ...(meta.creates ? (['idempotency_mismatch'] as const) : []),
    'rate_limited',
    'internal',
    'unavailable',
  ]
}

/** Examples of refusals that fit the operation's input and callers. */
function factsOf(
  { callers, details, sessionOnly }: DeclaredMeta,
  { fields }: InputShape,
  route: RestRoute,
): ProblemFacts {
  const stranger = callers === 'public' ? undefined : role.options.find((one) => !callers.includes(one))
  const [required] = [...fields].find(([, field]) => field.required && field.source === 'body') ?? []
  const [path, message] = required
    ? [required, 'is required']
    : fields.has('id')
      ? ['id', NOT_AN_ID]
      : fields.has('limit')
        ? ['limit', 'must be between 1 and 100']
        : ['page', `is not a known ${takesBody(route) ? 'field' : 'parameter'}`]
  return {
    not_found: { detail: `${RESOURCES[resourceIn(route.path)] ?? 'Resource'} not found.` },
    ...factsFrom(details ?? {}),
    validation_failed: { detail: `${path} ${message}.`, issues: [{ path, message }] },
    forbidden: {
      detail: stranger ? `The role ${stranger} may not do this.` : sessionOnly ? NOT_WITH_KEY : SETUP_ONLY,
    },
  }
}

function callersText({ type, meta: { callers, acceptsToken, sessionOnly } }: ProcedureRecord): string {
  if (callers !== 'public') {
    const haveKeys = callers.some((caller) => caller !== 'admin')
    const keys = sessionOnly ? ' Not with an API key.' : ' An API key needs the scope `write`.'
    return `Roles: ${callers.join(', ')}.${haveKeys && (sessionOnly || type === 'mutation') ? keys : ''}`
  }
  return acceptsToken ? 'Public; a token is optional.' : 'Public.'
}

function parametersOf(shape: InputShape, rest: RestRoute, schemas: Record<string, JsonSchema>): unknown[] {
  return [...shape.fields]
    .filter(([, field]) => field.source !== 'body')
    .map(([name, { source, required, schema }]) => {
      const { description, example: _, ...type } = schema
      return {
        name,
        in: source,
        required: source === 'path' || required,
        ...(description !== undefined && { description }),
        schema: type,
        example: source === 'path' && name === 'id' ? idInPath(rest.path) : exampleOf(schema, schemas, name),
      }
    })
}

/** The resource before the parameter of a path. */
const resourceIn = (path: string): string => /([\w-]+)\/:\w+/.exec(path)?.[1] ?? ''

/** What the service calls a resource that it does not find. */
const RESOURCES: Record<string, string> = {
  offers: 'Offer',
  applications: 'Application',
  'affiliate-links': 'Affiliate link',
  jobs: 'Job',
  'webhook-endpoints': 'Webhook endpoint',
  'webhook-deliveries': 'Webhook delivery',
  sales: 'Sale',
  flagged: 'Flag',
  users: 'User',
  stores: 'Store',
  sessions: 'Session',
}

/** The example of `:id`: that of the resource before it in the path. */
function idInPath(path: string): string {
  const id = EXAMPLES.ids[resourceIn(path)]
  if (!id) throw new Error(`${path} has no example of its id; call it in scripts/openapi-examples.ts`)
  return id
}

function bodyOf(
  procedure: string,
  shape: InputShape,
  schemas: Record<string, JsonSchema>,
): Record<string, unknown> | null {
  const fields = [...shape.fields].filter(([, field]) => field.source === 'body')
  if (fields.length === 0) return null
  const required = fields.filter(([, field]) => field.required).map(([name]) => name)
  const schema: JsonSchema = {
    type: 'object',
    properties: Object.fromEntries(fields.map(([name, field]) => [name, field.schema])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
  const example = EXAMPLES.bodies[procedure] ?? exampleOf(schema, schemas)
  return { required: required.length > 0, content: { 'application/json': { schema, example } } }
}

const LOCATION = {
  Location: {
    ...textHeader('The URL of the new resource.', `/jobs/${EXAMPLES.ids.jobs}`),
    schema: { type: 'string', format: 'uri-reference' },
  },
}

function successOf(
  procedure: ProcedureRecord,
  rest: RestRoute,
  schemas: Record<string, JsonSchema>,
): Record<string, unknown> {
  const headers = {
    ...(rest.location !== undefined && LOCATION),
    ...(rest.shared !== undefined && SHARED_HEADERS),
    ...rest.headers,
    ...RATE_LIMIT,
  }
  if (rest.status === 204) return { description: 'Success; no content.', headers }
  if (!(procedure.output instanceof z.ZodType)) {
    throw new Error(`procedure ${procedure.name}: a REST route needs an output schema`)
  }
  const schema = schemaOf(procedure.output, 'output', schemas)
  return {
    description: 'Success.',
    headers,
    content: {
      'application/json': {
        schema,
        ...(EXAMPLES.responses[procedure.name] ?? { example: exampleOf(schema, schemas) }),
      },
    },
  }
}

const ETAG = '"q2Jx0v5mB4y8sF1aZ7nKdw"'

/** The headers of a shared response; see `sendShared`. */
const SHARED_HEADERS = {
  ETag: {
    ...textHeader('Identifies this response. Absent if the request has a token.', ETAG),
    required: false,
  },
  'Cache-Control': textHeader(
    '`public, no-cache`: may be stored, must be revalidated. `no-store` if the request has a token.',
    'public, no-cache',
  ),
}

const IF_NONE_MATCH = parameter(
  'header',
  'If-None-Match',
  ETAG,
  'The `ETag` of a stored response. Ignored if the request has a token.',
)

const IDEMPOTENCY_KEY = {
  ...parameter(
    'header',
    IDEMPOTENCY_HEADER,
    'autumn-lamps-0042',
    'Chosen by you for this call. Within 24 hours, the same call of the same account with the same key gets the first answer and makes nothing; another call is refused.',
  ),
  schema: { type: 'string', minLength: 1, maxLength: 64 },
}

const NOT_MODIFIED = {
  description: 'The stored response is still current. No body.',
  headers: {
    ETag: textHeader('The same tag.', ETAG),
    'Cache-Control': textHeader('As in the stored response.', 'public, no-cache'),
    ...RATE_LIMIT,
  },
}

/** A zod schema as JSON Schema. Schemas with an id become components. */
function schemaOf(
  source: z.ZodType,
  io: 'input' | 'output',
  schemas: Record<string, JsonSchema>,
): JsonSchema {
  const { $schema, $defs, ...schema } = z.toJSONSchema(source, { io, override: forReaders }) as JsonSchema
  for (const [name, definition] of Object.entries($defs ?? {})) schemas[name] = withComponentRefs(definition)
  return withComponentRefs(schema)
}

/**
 * Responses may gain fields, so the document must not forbid them. A date's format replaces its pattern. The bounds of a plain
 * integer say nothing.
 */
function forReaders({ jsonSchema }: { jsonSchema: { [keyword: string]: unknown } }): void {
  if (jsonSchema.type === 'object') delete jsonSchema.additionalProperties
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

function withComponentRefs(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (key, value) => {
    if (key === '$ref' && typeof value === 'string') return `#/components/schemas/${nameOf(value)}`
    // A reference with a description of its own has this beside it.
    if (value?.$ref) delete value.additionalProperties
    return value
  }) as JsonSchema
}
