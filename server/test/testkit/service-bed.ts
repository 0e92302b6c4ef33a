import * as assert from 'uvu/assert'
import { jsonOrNull } from '../../../shared/json.ts'
import { type ServiceOptions, startService } from '../../service.ts'
import { openTestDatabase, type TestDatabaseOptions, type TestDialect } from './databases.ts'
import { assertDocumented } from './documented.ts'
import { orderHeaders, type StoreAccess } from './orders.ts'

export type ServiceBed = Awaited<ReturnType<typeof openServiceBed>>

const QUIET = {
  ...{ HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'silent' },
  ...{ SCHEDULE_BILLING: 'off', SCHEDULE_PAYOUTS: 'off', SCHEDULE_RECONCILIATION: 'off' },
  ...{ RATE_LIMIT_AUTH: '0', RATE_LIMIT_PUBLIC: '0', RATE_LIMIT_USER: '0' },
}

/** The whole service with these settings: without a log, schedules and limits unless they say otherwise. */
export async function startQuietly(settings: Record<string, string>, extend?: ServiceOptions['extend']) {
  const service = await startService({ ...(extend && { extend }), environment: { ...QUIET, ...settings } })
  if (!service.url) throw new Error('the service does not listen')
  return { service, url: service.url }
}

/** The whole service, started as its users start it: real HTTP, worker, sandbox, on a database of its own. */
export async function openServiceBed(
  dialect: TestDialect,
  settings: Record<string, string> = {},
  { extend, ...options }: TestDatabaseOptions & Pick<ServiceOptions, 'extend'> = {},
) {
  const testDatabase = await openTestDatabase(dialect, options)
  const own = { DATABASE_URL: testDatabase.url, DATA_DIR: testDatabase.folder }
  const { service, url } = await startQuietly({ ...own, ...settings }, extend)
  return {
    service,
    url,
    testDatabase,
    async close() {
      await service.stop()
      await testDatabase.close()
    },
  }
}

export interface Answer {
  status: number
  headers: Headers
  // Tests look into answers field by field; each schema has its own tests.
  // biome-ignore lint/suspicious/noExplicitAny: the body of any route
  body: any
}

export interface CallOptions {
  token?: string | undefined
  body?: unknown
  headers?: Record<string, string>
  raw?: Buffer | string
}

/** A JSON call as an outside client makes it; redirects are not followed. Throws for an answer that the OpenAPI document does not have. */
export async function call(
  base: string,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  const answer = await callAny(base, method, path, options)
  assertDocumented(method, path, answer)
  return answer
}

/** The same to another server than ours. */
export async function callAny(
  base: string,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer> {
  const answer = await fetch(new URL(path, base), {
    method,
    redirect: 'manual',
    headers: {
      ...(options.token && { authorization: `Bearer ${options.token}` }),
      ...(options.body !== undefined && { 'content-type': 'application/json' }),
      ...options.headers,
    },
    body:
      (options.raw as BodyInit | undefined) ??
      (options.body === undefined ? undefined : JSON.stringify(options.body)),
  })
  const text = await answer.text()
  return {
    status: answer.status,
    headers: answer.headers,
    body: text === '' ? null : (jsonOrNull(text) ?? text),
  }
}

/** Registers a merchant over HTTP, connects the store if there is one, and answers the token. */
export async function registerMerchant(url: string, store?: StoreAccess): Promise<string> {
  const account = { email: 'm@example.pk', password: 'correct horse battery' }
  const body = { ...account, role: 'merchant', display_name: 'M' }
  const { token } = (await call(url, 'POST', '/auth/register', { body })).body
  if (store) {
    const connection = { shop_domain: store.domain, webhook_secret: store.secret }
    assert.is((await call(url, 'POST', '/stores', { token, body: connection })).status, 201)
  }
  return token
}

/** The store's signed delivery of a body that is no order. */
export function deliver(url: string, store: StoreAccess, id: string): Promise<Answer> {
  const raw = `{"id":${id}}`
  return call(url, 'POST', '/webhooks/store-sales', { raw, headers: orderHeaders(store, id, raw) })
}
