import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Updateable } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Actor } from '../platform/api/procedure.ts'
import type { Schema } from '../platform/database/schema.ts'
import { type FileStorage, openFolder } from '../platform/storage/storage.ts'
import { addSales, buildExportWorld, type ExportWorld, saleRow } from '../test/testkit/export-world.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY, openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { jobsRouter } from './exports.procedures.ts'
import { openExportFile, startExport } from './exports.service.ts'
import {
  EXPORT_LEASE_MS,
  MAX_ATTEMPTS,
  nextExportDueAt,
  runNextExport,
  sweepExports,
} from './run-export.service.ts'

const ROWS = 1200
const NEVER = new AbortController().signal
const SALES = { resource: 'sales', format: 'ndjson', from: null, to: null } as const

/** The storage with a hook before each part of the content. */
function watched(storage: FileStorage, onPiece: (piece: number) => Promise<void> | void): FileStorage {
  return {
    ...storage,
    write: (key, content) =>
      storage.write(
        key,
        (async function* () {
          let piece = 0
          for await (const part of content) {
            await onPiece(piece)
            piece += 1
            yield part
          }
        })(),
      ),
  }
}

for (const dialect of proofDialects()) {
  const it = suite(`running exports on ${dialect}`)
  let bed: Testbed
  let world: ExportWorld
  let expected: string[]
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-exports-'))
  const storage = openFolder(join(folder, 'exports'))

  const start = async (actor: Actor = world.bilal) => (await startExport(bed.platform, actor, SALES)).id
  const jobOf = (id: string, actor: Actor = world.bilal) =>
    jobsRouter.createCaller(requestOf(bed.platform, actor)).get({ id })
  const idsOf = async (jobId: string) => {
    const file = await openExportFile(bed.platform, world.bilal.userId, jobId)
    if (file === 'expired') throw new Error('expired')
    return (await text(file.content))
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).id as string)
  }
  const files = () => readdirSync(join(folder, 'exports'))
  const filesOf = (jobId: string) => files().filter((name) => name.startsWith(jobId))
  const run = (into: FileStorage = storage) => runNextExport(bed.platform, into, NEVER)
  const finished = async () => {
    const id = await start()
    await run()
    return id
  }
  const change = (id: string, fields: Updateable<Schema['export_jobs']>) =>
    bed.platform.database.transaction((tx) =>
      tx.updateTable('export_jobs').set(fields).where('id', '=', id).execute(),
    )

  it.before(async () => {
    bed = await openTestbed(dialect, { DATA_DIR: folder })
    world = await buildExportWorld(bed.platform)
    const rows = Array.from({ length: ROWS - 1 }, () => saleRow(bed.platform, world, world.links[2]))
    for (let at = 0; at < rows.length; at += 400) await addSales(bed.platform, rows.slice(at, at + 400))
    const sales = await rowsOf(bed.platform, 'sales', { creator_id: world.bilal.userId })
    expected = sales.map(({ id }) => id).reverse()
    assert.is(expected.length, ROWS)
  })
  it.after(async () => {
    await bed.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('neither repeats nor skips a row while rows are added, and shows its progress', async () => {
    const id = await start()
    const seen: [number, number][] = []
    const growing = watched(storage, async () => {
      bed.clock.pass(2000)
      await addSales(bed.platform, [saleRow(bed.platform, world, world.links[2])])
      const { rows, progress } = await jobOf(id)
      seen.push([rows, progress])
    })
    assert.ok(await run(growing))
    assert.equal(await idsOf(id), expected)
    assert.equal(seen, [
      [0, 0],
      [500, 0.41],
      [1000, 0.83],
    ])
    const { rows, progress, state } = await jobOf(id)
    assert.equal([rows, progress, state], [ROWS, 1, 'succeeded'])
    assert.not(await run(), 'nothing is left')
    // Other tests of this suite need the original rows.
    expected = await idsOf(await finished())
    assert.is(expected.length, ROWS + 3)
  })

  it('is claimed by one of several workers', async () => {
    await start()
    assert.equal((await Promise.all([run(), run()])).toSorted(), [false, true])
  })

  it('finishes an export of a crashed worker, with a complete file', async () => {
    const id = await start()
    const [halfway, wake] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const stuck = watched(storage, async (piece) => {
      if (piece < 1) return
      halfway.resolve()
      await wake.promise
    })
    const zombie = run(stuck)
    await halfway.promise
    assert.not(await run(), 'its lease still holds')
    bed.clock.pass(EXPORT_LEASE_MS)
    assert.ok(await run())
    assert.equal(await idsOf(id), expected)
    const before = files()
    wake.resolve()
    await zombie
    assert.equal(files(), before, 'who comes back from the dead leaves nothing')
    assert.equal(await idsOf(id), expected)
    assert.is((await jobOf(id)).state, 'succeeded')
  })

  it('removes the file of a worker whose job was taken over before the file was stored', async () => {
    const id = await start()
    const slow: FileStorage = {
      ...storage,
      async write(key, content) {
        const whole = await text(content)
        bed.clock.pass(EXPORT_LEASE_MS)
        assert.ok(await run())
        await storage.write(key, Readable.from([whole]))
      },
    }
    await run(slow)
    assert.equal(filesOf(id), [`${id}-2.ndjson`])
    assert.equal(await idsOf(id), expected)
  })

  it('removes the partial file of a killed process', async () => {
    const id = await start()
    const half = join(folder, 'exports', `${id}-1.ndjson.part`)
    const due_at = bed.clock.now() + EXPORT_LEASE_MS
    await change(id, { state: 'running', lease_token: 'dead', attempts: 1, due_at })
    writeFileSync(half, '{"id":')
    bed.clock.pass(EXPORT_LEASE_MS)
    assert.ok(await run())
    assert.equal(filesOf(id), [`${id}-2.ndjson`])
    assert.equal(await idsOf(id), expected)
  })

  it('releases a job when its worker stops', async () => {
    const id = await start()
    const stopping = new AbortController()
    const stopped = watched(storage, (piece) => {
      if (piece === 1) stopping.abort()
    })
    await runNextExport(bed.platform, stopped, stopping.signal)
    assert.is((await jobOf(id)).state, 'queued')
    assert.ok(((await nextExportDueAt(bed.platform)) ?? Infinity) <= bed.clock.now())
    assert.equal(filesOf(id), [])
    assert.ok(await run())
    assert.equal(await idsOf(id), expected)
  })

  it('retries later, and reports when it gives up', async () => {
    const id = await start()
    const broken = watched(storage, () => {
      throw new Error('disk full at /var/exports')
    })
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      assert.ok(await run(broken), `attempt ${attempt}`)
      assert.is((await jobOf(id)).state, attempt < MAX_ATTEMPTS ? 'queued' : 'failed')
      assert.not(await run(broken), 'not at once')
      bed.clock.pass(600_001)
    }
    const job = await jobOf(id)
    assert.match(job.error ?? '', /could not be finished/)
    assert.not.match(job.error ?? '', /disk|var/)
    assert.is(await outcomeOf(openExportFile(bed.platform, world.bilal.userId, id)), 'not_found')
    assert.equal(filesOf(id), [])
  })

  it('gives up on a job that kills every worker', async () => {
    const id = await start()
    await change(id, { attempts: MAX_ATTEMPTS })
    assert.ok(await run())
    assert.is((await jobOf(id)).state, 'failed')
  })

  it("runs one export of a user at a time, and another user's beside it", async () => {
    const [first, second] = [await start(), await start()]
    const other = await start(world.ayesha)
    let others = 0
    const during = watched(storage, async (piece) => {
      if (piece > 0) return
      while (await run()) others += 1
    })
    await run(during)
    assert.is(others, 1)
    assert.is((await jobOf(other, world.ayesha)).state, 'succeeded')
    assert.is((await jobOf(first)).state, 'succeeded')
    assert.is((await jobOf(second)).state, 'queued')
    await run()
    assert.is((await jobOf(second)).state, 'succeeded')
  })

  it('keeps files from others, for seven days, and jobs for thirty', async () => {
    const id = await finished()
    const [name = ''] = filesOf(id)
    assert.is(statSync(join(folder, 'exports')).mode & 0o777, 0o700)
    assert.is(statSync(join(folder, 'exports', name)).mode & 0o777, 0o600)
    assert.ok(readFileSync(join(folder, 'exports', name), 'utf8').endsWith('\n'))
    bed.clock.pass(7 * DAY - 1)
    await sweepExports(bed.platform, storage)
    assert.is((await idsOf(id)).length, expected.length)
    bed.clock.pass(1)
    assert.is(await openExportFile(bed.platform, world.bilal.userId, id), 'expired')
    assert.is((await jobOf(id)).download_url, null)
    assert.ok((await sweepExports(bed.platform, storage)) >= 1)
    assert.equal(files(), [])
    assert.is(await openExportFile(bed.platform, world.bilal.userId, id), 'expired')
    bed.clock.pass(23 * DAY + 1)
    await sweepExports(bed.platform, storage)
    assert.is(await outcomeOf(openExportFile(bed.platform, world.bilal.userId, id)), 'not_found')
  })

  it.run()
}
