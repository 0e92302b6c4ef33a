import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import type { AnyRouter } from '@trpc/server'
import { z } from 'zod'
import { problem, role } from '../../shared/schemas/common.ts'
import { type ProcedureRecord, proceduresOf, type RestRoute } from '../platform/procedure.ts'
import { type InputShape, inputShapeOf, type JsonSchema } from './input-shape.ts'
import { CONCEPTS, EDGE_PATHS, EDGE_TAGS } from './openapi-edges.ts'
import { exampleOf, nameOf } from './openapi-examples.ts'
import { codesOf, problemResponses } from './openapi-problems.ts'
import { IF_NONE_MATCH, NOT_MODIFIED, SHARED_HEADERS } from './openapi-shared.ts'

/**
 * The OpenAPI 3.1 document of every procedure with a REST route, read off the procedures themselves, and of the few
 * routes beside them. `serverUrl` is where the service is reached.
 */
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
        bearer: { type: 'http', scheme: 'bearer', description: 'The token of a log-in or a registration.' },
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
      'Offers, applications, affiliate links, sales, billing cycles and payouts. All amounts are Pakistani rupees. Every operation is also a tRPC procedure of the same name under /trpc. Changes are additive: a field is never renamed or retyped, and there may be more fields than stand here.',
  }
}

function describedTag(name: string): { name: string; description: string } {
  const description = CONCEPTS[name]
  if (!description) throw new Error(`the OpenAPI document has no line on ${name}`)
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

function callersText({ meta: { callers } }: ProcedureRecord): string {
  return callers === 'public' ? 'For everybody.' : `For: ${callers.join(', ')}.`
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
    description: 'Where it is found.',
    required: true,
    schema: { type: 'string', format: 'uri-reference' },
  },
}

function successOf(
  procedure: ProcedureRecord,
  rest: RestRoute,
  schemas: Record<string, JsonSchema>,
): Record<string, unknown> {
  if (rest.status === 204) return { description: 'Done.', ...(rest.headers && { headers: rest.headers }) }
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

/** A zod schema as JSON Schema. Those with an id become components, and everything refers to them there. */
function schemaOf(
  source: z.ZodType,
  io: 'input' | 'output',
  schemas: Record<string, JsonSchema>,
): JsonSchema {
  const { $schema, $defs, ...schema } = z.toJSONSchema(source, { io, override: forReaders }) as JsonSchema
  for (const [name, definition] of Object.entries($defs ?? {}))
    schemas[name] = pointedAtComponents(definition)
  return pointedAtComponents(schema)
}

/** Answers may grow fields, so the document must not forbid them; and a date's format says more than its pattern. */
function forReaders({ jsonSchema }: { jsonSchema: { [keyword: string]: unknown } }): void {
  if (jsonSchema.type === 'object') delete jsonSchema.additionalProperties
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
}

function pointedAtComponents(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (key, value) =>
    key === '$ref' && typeof value === 'string' ? `#/components/schemas/${nameOf(value)}` : value,
  ) as JsonSchema
}
