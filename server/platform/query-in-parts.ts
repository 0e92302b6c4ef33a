import { type Connection, Query, type QueryConfig, type QueryResult } from 'pg'
import { BytesInParts } from './bytes-in-parts.ts'

/** What of the driver's connection is used: it writes messages, and its stream is corked while a statement is. */
interface MessageWriter {
  bind(config: Bind): void
  stream: { write(bytes: Buffer): boolean; writable: boolean }
}

interface Bind {
  portal?: string
  statement?: string
  values: readonly unknown[]
  valueMapper: (value: unknown) => Buffer | string | null
}

/** The statement as something that the driver's client takes; `done` hears of its end. */
export function queryInParts(
  config: QueryConfig,
  done: (error: Error | undefined, result: QueryResult) => void,
): Query {
  const query = new Query(config, done)
  const submit = query.submit.bind(query)
  query.submit = (connection) => submit(bindingInParts(connection))
  const { query_timeout } = config as { query_timeout?: number }
  return Object.assign(query, query_timeout !== undefined && { query_timeout })
}

/** The connection, but for the message that carries the parameters. */
function bindingInParts(connection: Connection): Connection {
  const { stream } = connection as unknown as MessageWriter
  const bind = (message: Bind) => {
    if (!stream.writable) return
    for (const part of bindMessage(message)) stream.write(part)
  }
  return Object.create(connection, { bind: { value: bind } }) as Connection
}

const BIND = 'B'.charCodeAt(0)
const BINARY = 1
/** One format for all columns of the answer, and that is text. */
const ANSWERED_AS_TEXT = [1, 0]
const NULL_SIZE = -1

/** PostgreSQL's Bind message, in parts that go out one behind the other. */
function* bindMessage({ portal = '', statement = '', values, valueMapper }: Bind): Generator<Buffer> {
  const last = values.at(-1)
  const parts = last instanceof BytesInParts ? last.parts : []
  const mapped = values.map((value) => (value instanceof BytesInParts ? Buffer.alloc(0) : valueMapper(value)))
  const formats = mapped.map((value) => (Buffer.isBuffer(value) ? BINARY : 0))
  const size = parts.reduce((sum, part) => sum + part.length, 0)
  const head = Buffer.concat([
    Buffer.from(`${portal}\0${statement}\0`),
    shorts([formats.length, ...formats, mapped.length]),
    ...mapped.flatMap((value, place) => withSize(value, place === mapped.length - 1 ? size : 0)),
  ])
  const tail = shorts(ANSWERED_AS_TEXT)
  const start = Buffer.alloc(5)
  start[0] = BIND
  start.writeInt32BE(4 + head.length + size + tail.length, 1)
  yield Buffer.concat([start, head])
  yield* parts
  yield tail
}

/** A parameter behind its size; `more` bytes of it follow later. */
function withSize(value: Buffer | string | null, more: number): Buffer[] {
  const size = Buffer.alloc(4)
  if (value === null) {
    size.writeInt32BE(NULL_SIZE)
    return [size]
  }
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  size.writeInt32BE(bytes.length + more)
  return [size, bytes]
}

function shorts(numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * numbers.length)
  numbers.forEach((number, place) => {
    bytes.writeInt16BE(number, 2 * place)
  })
  return bytes
}
