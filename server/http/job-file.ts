import type { FastifyInstance } from 'fastify'
import { idParam } from '../../shared/schemas/common.ts'
import type { ExportFormat } from '../../shared/schemas/jobs.ts'
import { openExportFile } from '../exports/exports.service.ts'
import { identify, NOT_LOGGED_IN, refuseSetupOnly } from '../platform/api/procedure.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import { contextOf, type HttpApp } from './context.ts'
import type { RateLimits } from './rate-limit.ts'

const MEDIA_TYPE: Record<ExportFormat, string> = {
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
}
/** A client that reads nothing for this long is disconnected, so that its file is closed. */
const IDLE_MS = 60_000

/** `GET` and `HEAD /jobs/:id/file`: streams an export's file to the user who started the export. */
export function registerJobFile(
  server: FastifyInstance,
  { platform }: Pick<HttpApp, 'platform'>,
  limits: Pick<RateLimits, 'admitUser'>,
): void {
  server.route<{ Params: { id: string } }>({
    method: ['GET', 'HEAD'],
    url: '/jobs/:id/file',
    async handler(request, reply) {
      const context = contextOf(platform, request, reply)
      await limits.admitUser(reply, context)
      const actor = await identify(context)
      if (!actor) throw new Refusal('unauthenticated', NOT_LOGGED_IN)
      refuseSetupOnly(actor)
      const id = idParam.safeParse(request.params.id)
      if (!id.success) throw invalidFields([{ path: 'id', message: 'must be an id' }])
      const file = await openExportFile(platform, actor.userId, id.data)
      if (file === 'expired') throw new Refusal('gone', 'The file has expired. Start the export again.')
      reply
        .type(MEDIA_TYPE[file.format])
        .header('content-length', file.bytes)
        .header('content-disposition', `attachment; filename="${file.name}"`)
      if (request.method === 'HEAD') {
        file.content.destroy()
        return reply.send()
      }
      reply.raw.setTimeout(IDLE_MS, () => reply.raw.destroy())
      return reply.send(file.content)
    },
  })
}
