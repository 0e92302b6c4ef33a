import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startLoops } from '../jobs/loop.ts'
import { exportLoops } from '../jobs/worker.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { buildExportWorld, drainExports } from '../test/testkit/export-world.ts'
import { logIn } from '../test/testkit/people.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { isRefused } from '../test/testkit/web-people.ts'

for (const dialect of proofDialects()) {
  const it = suite(`job files on ${dialect}`)
  let bed: WebTestbed
  let token: string
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-job-file-'))

  const ask = (path: string) => bed.ask('GET', path, { token })
  const fetchFile = (id: string, method = 'GET') =>
    fetch(`${bed.base}/jobs/${id}/file`, { method, headers: { authorization: `Bearer ${token}` } })
  const start = async (resource = 'sales', format = 'csv') => {
    const answer = await bed.ask('POST', '/jobs/export', { token, body: { resource, format } })
    assert.equal([answer.status, answer.headers.get('location')], [202, `/jobs/${answer.body.id}`])
    return String(answer.body.id)
  }

  it.before(async () => {
    bed = await openWebTestbed(dialect, { DATA_DIR: folder })
    token = await logIn(bed.platform, (await buildExportWorld(bed.platform)).kurta, 60 * DAY)
  })
  it.after(async () => {
    await bed.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('sends the file to its starter once it is there, for seven days', async () => {
    const id = await start()
    isRefused(await ask(`/jobs/${id}/file`), 404, 'not_found')
    await drainExports(bed.platform)
    const answer = await fetchFile(id)
    const [type, length, disposition = ''] = ['type', 'length', 'disposition'].map(
      (name) => answer.headers.get(`content-${name}`) ?? '',
    )
    assert.equal([answer.status, type], [200, 'text/csv; charset=utf-8; header=present'])
    assert.match(disposition, /^attachment; filename="sales-2026-11-01-[0-9a-f]{6}\.csv"$/)
    const content = await answer.text()
    assert.is(length, String(Buffer.byteLength(content)))
    assert.match(content, /^id,acceptance_status,.*,created_at,decided_at,attributed_by\r\n/)
    assert.is(content.split('\r\n').length, 4)
    const head = await fetchFile(id, 'HEAD')
    assert.equal([head.status, await head.text()], [200, ''])
    assert.is(head.headers.get('content-length'), length)
    bed.clock.pass(7 * DAY)
    isRefused(await ask(`/jobs/${id}/file`), 410, 'gone')
    assert.is((await ask(`/jobs/${id}`)).status, 200)
  })

  it('sends NDJSON as such', async () => {
    const id = await start('clicks', 'ndjson')
    await drainExports(bed.platform)
    const answer = await fetchFile(id)
    assert.is(answer.headers.get('content-type'), 'application/x-ndjson')
    assert.is(JSON.parse(await answer.text()).kind, 'visit')
  })

  it('is written by the worker as soon as it is asked for', async () => {
    const loops = startLoops(bed.platform, exportLoops(bed.platform))
    try {
      const id = await start('applications', 'ndjson')
      const ended = await eventually(
        async () => (await ask(`/jobs/${id}`)).body,
        ({ state }) => state === 'succeeded',
      )
      assert.equal([ended.rows, ended.progress], [1, 1])
      assert.is(ended.download_url, `http://127.0.0.1:3000/jobs/${id}/file`)
    } finally {
      await loops.stop()
    }
  })

  it.run()
}
