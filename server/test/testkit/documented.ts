import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openApiDocument } from '../../http/openapi/openapi.ts'
import { appRouter } from '../../http/router.ts'

interface LiveAnswer {
  status: number
  headers: Headers
  body: unknown
}
interface Documented {
  /** What the document names each operation by method. */
  [method: string]: { responses: Record<string, { content?: Record<string, unknown> }> }
}

let known: ReturnType<typeof readDocument> | undefined

function readDocument() {
  const document = openApiDocument(appRouter, 'http://127.0.0.1')
  const formats = { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ }
  const ajv = new Ajv2020({ strict: false, logger: false, formats })
  ajv.addSchema(document, 'openapi')
  const paths = Object.entries(document.paths as Record<string, Documented>).map(([path, operations]) => ({
    path,
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
    operations,
  }))
  // A literal path comes before one with a parameter.
  paths.sort((a, b) => a.path.split('{').length - b.path.split('{').length)
  return { ajv, paths, validators: new Map<string, ValidateFunction>() }
}

/**
 * Throws if the OpenAPI document has this operation and not this answer of it: the status, the media type, or the body's schema.
 * HEAD answers as GET without its body.
 */
export function assertDocumented(
  method: string,
  address: string,
  { status, headers, body }: LiveAnswer,
): void {
  known ??= readDocument()
  const pathname = new URL(address, 'http://127.0.0.1').pathname
  const found = known.paths.find(({ pattern }) => pattern.test(pathname))
  const verb = method.toLowerCase().replace('head', 'get')
  const operation = found?.operations[verb]
  if (!found || !operation) return
  const answer = operation.responses[status]
  const what = `${method} ${pathname}: ${status}`
  if (!answer) throw new Error(`${what} is not in the OpenAPI document: ${JSON.stringify(body)}`)
  const type = headers.get('content-type')?.split(';')[0] ?? ''
  // Browsers get pages in place of problems.
  if (method === 'HEAD' || body === null || (status >= 400 && type === 'text/html')) return
  if (!answer.content?.[type]) throw new Error(`${what} ${type} is not in the OpenAPI document`)
  const place = ['paths', found.path, verb, 'responses', status, 'content', type, 'schema']
  const ref = `openapi#/${place.map((part) => encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`
  const validate = known.validators.get(ref) ?? known.ajv.compile({ $ref: ref })
  known.validators.set(ref, validate)
  if (!validate(body))
    throw new Error(`${what} differs from its schema: ${known.ajv.errorsText(validate.errors)}`)
}
