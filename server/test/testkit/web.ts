import type { FastifyInstance } from 'fastify'
import { suite, type Test } from 'uvu'
import { createClickRecorder } from '../../clicks/clicks.service.ts'
import { createServer } from '../../http/server.ts'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
import { migrationState } from '../../platform/database/migration-state.ts'
import type { Platform } from '../../platform/platform.ts'
import { createSignatureScheme } from '../../processor/signatures/choose-scheme.ts'
import type { TestDialect } from './databases.ts'
import { type Answer, type CallOptions, call } from './service-bed.ts'
import { openTestbed, type Testbed } from './testbed.ts'

/** Signs what the processor sends to a web testbed, by the scheme standard-webhooks. */
export const WEB_TESTBED_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

export interface LogLine {
  level: string
  message: string
  [field: string]: unknown
}

/** Puts a list in place of the platform's log. */
export function linesOf({ log }: Platform): LogLine[] {
  const lines: LogLine[] = []
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    const write = (facts: object, message: string) => lines.push({ ...facts, level, message })
    Object.assign(log, { [level]: write })
  }
  return lines
}

export type WebTestbed = Awaited<ReturnType<typeof serveTestbed>>

/** The real server on a free port over a fresh database, without worker and scheduler. */
export async function openWebTestbed(dialect: TestDialect, settings: Record<string, string> = {}) {
  return serveTestbed(await openTestbed(dialect, settings))
}

/** A suite over one web testbed, which opens before its tests and closes after them. */
export function webSuite<Context = unknown>(
  name: string,
  dialect: TestDialect = 'sqlite',
  settings: Record<string, string> = {},
): Test<{ bed: WebTestbed } & Context> {
  const it = suite<{ bed: WebTestbed } & Context>(name)
  it.before(async (world) => {
    world.bed = await openWebTestbed(dialect, settings)
  })
  it.after(({ bed }) => bed?.close())
  return it
}

/** The real server over a platform whose database is up to date; it does not listen yet. */
export function serverOver(
  platform: Platform,
  parts: Partial<Parameters<typeof createServer>[0]> = {},
): Promise<FastifyInstance> {
  return createServer({
    platform,
    clicks: createClickRecorder(platform),
    inbox: createInboxRecorder(platform),
    processorSignature: {
      scheme: createSignatureScheme({ scheme: 'standard-webhooks' }),
      secrets: [WEB_TESTBED_SECRET],
    },
    pendingMigrations: async () => [],
    // A checkout may hold one, or none.
    clientPackage: import.meta.filename,
    ...parts,
  })
}

/** The real server on a free port over a testbed, which closes with it. */
export async function serveTestbed(bed: Testbed) {
  const server = await serverOver(bed.platform, {
    pendingMigrations: async () => (await migrationState(bed.testDatabase.database)).pending,
  })
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    ...bed,
    base,
    server,
    /** As `call`; the body of an answer without one is an empty object. */
    async ask(method: string, path: string, request?: CallOptions): Promise<Answer> {
      const answer = await call(base, method, path, request)
      return { ...answer, body: answer.body ?? {} }
    },
    async close() {
      await server.close()
      await bed.close()
    },
  }
}
