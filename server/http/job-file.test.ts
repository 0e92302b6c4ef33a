import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastify, { type FastifyInstance } from 'fastify'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { problem } from '../../shared/schemas/common.ts'
import { job } from '../../shared/schemas/jobs.ts'
import { jobsRouter } from '../exports/exports.procedures.ts'
import { exportStorage } from '../exports/exports.service.ts'
import { sweepExports } from '../exports/run-export.service.ts'
import { startLoops } from '../jobs/loop.ts'
import { exportLoops } from '../jobs/worker.ts'
import { router } from '../platform/api/procedure.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { buildExportWorld, drainExports, type ExportWorld } from '../test/testkit/export-world.ts'
import { logIn } from '../test/testkit/people.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { DAY, openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { sendProblem } from './errors.ts'
import { registerJobFile } from './job-file.ts'
import { createRateLimits } from './rate-limit.ts'
import { registerRest } from './rest.ts'

for (const dialect of proofDialects()) {
  const it = suite(`job files on ${dialect}`)
  let bed: Testbed
  let world: ExportWorld
  let server: FastifyInstance
  let base: string
  let token: string
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-job-file-'))

  const ask = (method: string, path: string, bearer: string | null = token, body?: unknown) =>
    fetch(base + path, {
      method,
      headers: {
        ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const isProblem = async (answer: Response, status: number, code: string) => {
    assert.is(answer.status, status)
    assert.is(answer.headers.get('content-type'), 'application/problem+json')
    const { code: reported, status: repeated } = problem.parse(await answer.json())
    assert.equal([reported, repeated], [code, status])
  }
  const start = async (body: object = { resource: 'sales', format: 'csv' }) => {
    const answer = await ask('POST', '/jobs/export', token, body)
    assert.is(answer.status, 202)
    const started = job.parse(await answer.json())
    assert.is(answer.headers.get('location'), `/jobs/${started.id}`)
    return started.id
  }

  it.before(async () => {
    bed = await openTestbed(dialect, { DATA_DIR: folder })
    const { platform } = bed
    world = await buildExportWorld(platform)
    token = await logIn(platform, world.kurta, 60 * DAY)
    server = fastify({ genReqId: () => platform.ids.next() })
    server.setErrorHandler((error, request, reply) => sendProblem(platform, request, reply, error))
    registerRest(server, platform, router({ jobs: jobsRouter }))
    registerJobFile(server, { platform }, createRateLimits(platform, router({ jobs: jobsRouter })))
    base = await server.listen({ host: '127.0.0.1', port: 0 })
  })
  it.after(async () => {
    await server.close()
    await bed.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('sends the file to its starter once it is there', async () => {
    const id = await start()
    await isProblem(await ask('GET', `/jobs/${id}/file`), 404, 'not_found')
    await drainExports(bed.platform)
    const answer = await ask('GET', `/jobs/${id}/file`)
    assert.is(answer.status, 200)
    assert.is(answer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
    assert.match(
      answer.headers.get('content-disposition') ?? '',
      /^attachment; filename="sales-2026-11-01-[0-9a-f]{6}\.csv"$/,
    )
    const content = await answer.text()
    assert.is(answer.headers.get('content-length'), String(Buffer.byteLength(content)))
    assert.match(content, /^id,acceptance_status,.*,created_at,decided_at,attributed_by\r\n/)
    assert.is(content.split('\r\n').length, 4)
    const head = await ask('HEAD', `/jobs/${id}/file`)
    assert.equal([head.status, await head.text()], [200, ''])
    assert.is(head.headers.get('content-length'), String(Buffer.byteLength(content)))
  })

  it('sends NDJSON as such', async () => {
    const id = await start({ resource: 'clicks', format: 'ndjson' })
    await drainExports(bed.platform)
    const answer = await ask('GET', `/jobs/${id}/file`)
    assert.is(answer.headers.get('content-type'), 'application/x-ndjson')
    assert.is(JSON.parse(await answer.text()).kind, 'visit')
  })

  it('is written by the worker as soon as it is asked for', async () => {
    const loops = startLoops(bed.platform, exportLoops(bed.platform))
    try {
      const id = await start({ resource: 'applications', format: 'ndjson' })
      const ended = await eventually(
        async () => job.parse(await (await ask('GET', `/jobs/${id}`)).json()),
        ({ state }) => state === 'succeeded',
      )
      assert.equal([ended.rows, ended.progress], [1, 1])
      assert.is(ended.download_url, `http://127.0.0.1:3000/jobs/${id}/file`)
    } finally {
      await loops.stop()
    }
  })

  it('is gone after seven days, swept or not', async () => {
    const id = await start()
    await drainExports(bed.platform)
    bed.clock.pass(7 * DAY)
    await isProblem(await ask('GET', `/jobs/${id}/file`), 410, 'gone')
    await sweepExports(bed.platform, await exportStorage(bed.platform.config))
    assert.equal(readdirSync(join(folder, 'exports')), [])
    await isProblem(await ask('GET', `/jobs/${id}/file`), 410, 'gone')
    assert.is((await ask('GET', `/jobs/${id}`)).status, 200)
  })

  it.run()
}
