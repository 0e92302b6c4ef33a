import type { FastifyInstance } from 'fastify'
import { createClickRecorder } from '../../clicks/clicks.service.ts'
import { createServer } from '../../http/server.ts'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
import { migrationState } from '../../platform/database/migration-state.ts'
import type { Platform } from '../../platform/platform.ts'
import { createSignatureScheme } from '../../processor/signatures/choose-scheme.ts'
import type { TestDialect } from './databases.ts'
import { call } from './service-bed.ts'
import { openTestbed, type Testbed } from './testbed.ts'

/** Signs what the processor sends to a web testbed, by the scheme standard-webhooks. */
export const WEB_TESTBED_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`

export interface WebAnswer {
  status: number
  headers: Headers
  /** The JSON object that was answered; empty for an answer without a body. */
  body: Record<string, unknown>
}

export type WebTestbed = Awaited<ReturnType<typeof serveTestbed>>

/** The real server on a free port over a fresh database, without worker and scheduler. */
export async function openWebTestbed(dialect: TestDialect, settings: Record<string, string> = {}) {
  return serveTestbed(await openTestbed(dialect, settings))
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
    async ask(method: string, path: string, request?: Parameters<typeof call>[3]): Promise<WebAnswer> {
      const answer = await call(base, method, path, request)
      return { ...answer, body: answer.body ?? {} }
    },
    async close() {
      await server.close()
      await bed.close()
    },
  }
}
