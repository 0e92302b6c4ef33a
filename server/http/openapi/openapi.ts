import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import type { AnyRouter } from '@trpc/server'
import { z } from 'zod'
import type { ErrorCode } from '../../../shared/error-codes.ts'
import { problem, role } from '../../../shared/schemas/common.ts'
import {
  type ProcedureMeta,
  type ProcedureRecord,
  proceduresOf,
  type RestRoute,
} from '../../platform/api/procedure.ts'
import { type InputShape, inputShapeOf, type JsonSchema } from '../rest-input.ts'
import { CONCEPTS, EDGE_PATHS, EDGE_TAGS } from './edge-operations.ts'
import { exampleOf, nameOf } from './examples.ts'
import { problemResponses } from './problem-responses.ts'

/** The OpenAPI 3.1 document: every procedure with a REST route, and the routes that are not procedures. */
export function openApiDocument(appRouter: AnyRouter, serverUrl: string): Record<string, unknown> {
  const schemas: Record<string, JsonSchema> = {}
  schemaOf(problem, 'output', schemas)
  const paths: Record<string, Record<string, unknown>> = {}
  const tags = new Set<string>()
  for (const procedure of proceduresOf(appRouter)) {
    const { rest } = procedure.meta
    if (!rest) continue
    const path = rest.path.replace(/:([A-Za-z0-9_]+)/g, '{$1}')
    const operations = paths[path] ?? {}
    operations[rest.method.toLowerCase()] = operationOf(procedure, rest, schemas)
    paths[path] = operations
    tags.add(tagOf(procedure.name))
  }
  return {
    openapi: '3.1.0',
    info: infoOf(),
    servers: [{ url: serverUrl }],
    tags: [...[...tags].map(describedTag), ...EDGE_TAGS],
    security: [{ bearer: [] }],
    paths: { ...paths, ...EDGE_PATHS },
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'The token that logging in or registering returns.',
        },
      },
      schemas,
    },
  }
}

function infoOf(): Record<string, unknown> {
  const file = findPackageJSON(import.meta.url)
  if (!file) throw new Error('package.json is missing')
  const { version, license } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>
  return {
    title: 'Affiliate offer marketplace',
    version,
    license: { name: license, identifier: license },
    description:
      'Offers, applications, affiliate links, sales, billing cycles and payouts. All amounts are in Pakistani rupees. Each operation with a bearer token is also a tRPC procedure of the same name under /trpc. Changes are additive: fields are never renamed or retyped, but new ones may appear.',
  }
}

function describedTag(name: string): { name: string; description: string } {
  const description = CONCEPTS[name]
  if (!description) throw new Error(`the tag ${name} has no description; add it to CONCEPTS`)
  return { name, description }
}

function tagOf(name: string): string {
  return name.split('.', 1)[0] ?? name
}

function operationOf(
  procedure: ProcedureRecord,
  rest: RestRoute,
  schemas: Record<string, JsonSchema>,
): Record<string, unknown> {
  const { meta } = procedure
  const shape = inputShapeOf(procedure, rest)
  const body = bodyOf(shape, schemas)
  const isPublic = meta.callers === 'public'
  const restricted = meta.callers !== 'public' && meta.callers.length < role.options.length
  return {
    operationId: procedure.name,
    tags: [tagOf(procedure.name)],
    summary: meta.summary,
    description: [meta.description, callersText(procedure)].filter(Boolean).join('\n\n'),
    security: isPublic ? [{}, { bearer: [] }] : [{ bearer: [] }],
    parameters: [...parametersOf(shape), ...(rest.shared !== undefined ? [IF_NONE_MATCH] : [])],
    ...(body && { requestBody: body }),
    responses: {
      [String(rest.status ?? 200)]: successOf(procedure, rest, schemas),
      ...(rest.shared !== undefined && { 304: NOT_MODIFIED }),
      ...problemResponses(codesOf(meta, { hasBody: body !== null, restricted })),
    },
  }
}

/** The codes that an operation can answer with: its own, and those of its input, callers and limits. */
function codesOf(meta: ProcedureMeta, facts: { hasBody: boolean; restricted: boolean }): ErrorCode[] {
  return [
    'validation_failed',
    'unauthenticated',
    ...(facts.hasBody ? (['malformed_json', 'payload_too_large', 'unsupported_media_type'] as const) : []),
    ...(facts.restricted ? (['forbidden'] as const) : []),
    ...(meta.errors ?? []),
    'rate_limited',
    'internal',
    'unavailable',
  ]
}

function callersText({ meta: { callers } }: ProcedureRecord): string {
  return callers === 'public' ? 'Public.' : `Roles: ${callers.join(', ')}.`
}

function parametersOf(shape: InputShape): unknown[] {
  return [...shape.fields]
    .filter(([, field]) => field.source !== 'body')
    .map(([name, { source, required, schema }]) => {
      const { description, example, ...rest } = schema
      return {
        name,
        in: source,
        required: source === 'path' || required,
        ...(description !== undefined && { description }),
        ...(example !== undefined && { example }),
        schema: rest,
      }
    })
}

function bodyOf(shape: InputShape, schemas: Record<string, JsonSchema>): Record<string, unknown> | null {
  const fields = [...shape.fields].filter(([, field]) => field.source === 'body')
  if (fields.length === 0) return null
  const required = fields.filter(([, field]) => field.required).map(([name]) => name)
  const schema: JsonSchema = {
    type: 'object',
    properties: Object.fromEntries(fields.map(([name, field]) => [name, field.schema])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
  const example = exampleOf(schema, schemas)
  return { required: required.length > 0, content: { 'application/json': { schema, example } } }
}

const LOCATION = {
  Location: {
    description: 'The URL of the new resource.',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
  },
}

function successOf(
  procedure: ProcedureRecord,
  rest: RestRoute,
  schemas: Record<string, JsonSchema>,
): Record<string, unknown> {
  if (rest.status === 204)
    return { description: 'Success; no content.', ...(rest.headers && { headers: rest.headers }) }
  if (!(procedure.output instanceof z.ZodType)) {
    throw new Error(`procedure ${procedure.name}: a REST route needs an output schema`)
  }
  const schema = schemaOf(procedure.output, 'output', schemas)
  return {
    description: 'Success.',
    ...(rest.location !== undefined && { headers: LOCATION }),
    ...(rest.shared !== undefined && { headers: SHARED_HEADERS }),
    content: { 'application/json': { schema, example: exampleOf(schema, schemas) } },
  }
}

const ETAG = '"q2Jx0v5mB4y8sF1aZ7nKdw"'

const textHeader = (description: string, example: string) => ({
  description,
  required: true,
  schema: { type: 'string' },
  example,
})

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

const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of a stored response. Ignored if the request has a token.',
  schema: { type: 'string' },
  example: ETAG,
}

const NOT_MODIFIED = {
  description: 'The stored response is still current. No body.',
  headers: {
    ETag: textHeader('The same tag.', ETAG),
    'Cache-Control': textHeader('As in the stored response.', 'public, no-cache'),
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

/** Responses may gain fields, so the document must not forbid them. A date's format replaces its pattern. */
function forReaders({ jsonSchema }: { jsonSchema: { [keyword: string]: unknown } }): void {
  if (jsonSchema.type === 'object') delete jsonSchema.additionalProperties
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
}

function withComponentRefs(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (key, value) =>
    key === '$ref' && typeof value === 'string' ? `#/components/schemas/${nameOf(value)}` : value,
  ) as JsonSchema
}
