import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type ExportResource, exportResource } from '../../shared/schemas/jobs.ts'
import { pendingOrdersRouter } from '../pending-orders/pending-orders.procedures.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { isoTime } from '../platform/clock.ts'
import {
  addSales,
  buildExportWorld,
  drainExports,
  type ExportWorld,
  saleRow,
} from '../test/testkit/export-world.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { assertMapped, pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { columnsOf } from '../test/testkit/rows.ts'
import { HOUR, openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { jobsRouter } from './exports.procedures.ts'
import { openExportFile } from './exports.service.ts'

type Person = 'kurta' | 'shoes' | 'ayesha' | 'bilal' | 'admin'

/** How many rows of the world each of them sees; `forbidden` is refused. */
const SEEN: Record<ExportResource, Record<Person, number | 'forbidden'>> = {
  sales: { kurta: 2, shoes: 2, ayesha: 2, bilal: 1, admin: 4 },
  payouts: { kurta: 1, shoes: 2, ayesha: 1, bilal: 1, admin: 2 },
  clicks: { kurta: 1, shoes: 2, ayesha: 2, bilal: 1, admin: 3 },
  billing_cycles: { kurta: 1, shoes: 1, ayesha: 'forbidden', bilal: 'forbidden', admin: 2 },
  applications: { kurta: 1, shoes: 2, ayesha: 2, bilal: 1, admin: 3 },
  pending_orders: { kurta: 1, shoes: 2, ayesha: 2, bilal: 1, admin: 3 },
}

/** The rows of NDJSON. */
const rowsIn = (content: string) =>
  content
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

for (const dialect of proofDialects()) {
  const it = suite(`exports on ${dialect}`)
  let bed: Testbed
  let world: ExportWorld
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-exports-'))

  const as = (actor: Actor) => jobsRouter.createCaller(requestOf(bed.platform, actor))
  const exportAs = async (actor: Actor, input: Parameters<ReturnType<typeof as>['startExport']>[0]) => {
    const { id } = await as(actor).startExport(input)
    await drainExports(bed.platform)
    const job = await as(actor).get({ id })
    assert.is(job.state, 'succeeded', job.error ?? '')
    const file = await openExportFile(bed.platform, actor.userId, id)
    if (file === 'expired') throw new Error('expired at once')
    return { job, content: (await buffer(file.content)).toString() }
  }

  it.before(async () => {
    bed = await openTestbed(dialect, { DATA_DIR: folder })
    world = await buildExportWorld(bed.platform)
  })
  it.after(async () => {
    await bed.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('are refused while local files are on several hosts, and a file of another host is not called lost', async () => {
    const { database } = bed.platform
    const seen_at = Date.now()
    const process = (host: string, roles: string) => ({
      id: bed.platform.ids.next(),
      ...{ host, pid: 1, roles, money_settings: '{}', seen_at },
    })
    const start = () => as(world.kurta).startExport({ resource: 'sales', format: 'csv' })
    const enter = (rows: ReturnType<typeof process>[]) =>
      database.transaction((tx) => tx.insertInto('processes').values(rows).execute())
    await enter([process('one', 'web'), process('one', 'worker'), process('two', 'scheduler')])
    const { id } = await start()
    await drainExports(bed.platform)
    await enter([process('two', 'web,worker')])
    const refusal = await start().catch((error: Error) => error)
    assert.match(String(refusal), 'EXPORT_STORAGE=s3')
    const elsewhere = mkdtempSync(join(tmpdir(), 'affiliate-exports-'))
    const other = { ...bed.platform, config: { ...bed.platform.config, DATA_DIR: elsewhere } }
    const download = () => openExportFile(other, world.kurta.userId, id)
    assert.is(await outcomeOf(download()), 'unavailable')
    await database.transaction((tx) => tx.deleteFrom('processes').execute())
    assert.is(await outcomeOf(download()), 'not_found')
    rmSync(elsewhere, { recursive: true })
  })

  for (const resource of exportResource.options) {
    for (const [person, seen] of Object.entries(SEEN[resource]) as [Person, number | 'forbidden'][]) {
      it(`${person} exports ${resource}: ${seen}`, async () => {
        const actor = world[person]
        if (seen === 'forbidden') {
          assert.is(await outcomeOf(as(actor).startExport({ resource, format: 'csv' })), 'forbidden')
          return
        }
        const { job, content } = await exportAs(actor, { resource, format: 'ndjson' })
        const rows = rowsIn(content)
        assert.equal([rows.length, job.rows, job.progress], [seen, seen, 1])
        const ids = rows.map((row) => row.id)
        assert.equal(ids, ids.toSorted().reverse(), 'newest first')
        const csv = await exportAs(actor, { resource, format: 'csv' })
        const lines = csv.content.split('\r\n')
        assert.is(lines.length, seen + 2, 'a header, the rows, and an end')
        assertMapped(lines.slice(1, -1), (line) => line.split(',')[0], ids)
      })
    }
  }

  it('shows each user their own rows, and keeps formulas out of CSV', async () => {
    const rowsOf = async (actor: Actor, resource: ExportResource) =>
      rowsIn((await exportAs(actor, { resource, format: 'ndjson' })).content)
    const [part] = await rowsOf(world.kurta, 'payouts')
    assert.equal([part.amount, part.creator.id], ['100.00', world.ayesha.userId])
    const [own] = await rowsOf(world.ayesha, 'payouts')
    assert.equal([own.amount, own.creator], ['150.00', undefined])
    assert.ok((await rowsOf(world.kurta, 'sales')).every((row) => 'platform_fee' in row))
    assert.ok((await rowsOf(world.ayesha, 'sales')).every((row) => !('platform_fee' in row)))
    const all = await rowsOf(world.admin, 'sales')
    const { content } = await exportAs(world.kurta, { resource: 'applications', format: 'csv' })
    assert.ok(content.includes(`,"'=ayesha, ""A""",`), content)
    assert.equal(new Set(pluck(all, 'merchant_id')), new Set([world.kurta.userId, world.shoes.userId]))
  })

  it('shows pending orders as the list does, by the time of their placement', async () => {
    const linesOf = async (actor: Actor, period: { from?: string; to?: string } = {}) => {
      const input = { resource: 'pending_orders', format: 'ndjson', ...period } as const
      return rowsIn((await exportAs(actor, input)).content)
    }
    for (const actor of [world.kurta, world.ayesha]) {
      const list = pendingOrdersRouter.createCaller(requestOf(bed.platform, actor)).list({})
      assert.equal(await linesOf(actor), (await list).items)
    }
    const owners = [world.shoes, world.shoes, world.kurta]
    assert.equal(pluck(await linesOf(world.admin), 'merchant_id'), pluck(owners, 'userId'))
    const [{ placed_at }] = await linesOf(world.kurta)
    assert.is((await linesOf(world.kurta, { from: placed_at })).length, 1)
    assert.is((await linesOf(world.kurta, { to: placed_at })).length, 0)
  })

  it('itemizes an invoice: the sales of one billing cycle of the merchant', async () => {
    const { kurta, shoes, ayesha, admin, cycleOf } = world
    const [own, other] = [cycleOf.get(kurta.userId), cycleOf.get(shoes.userId)]
    const sales = (billing_cycle_id: string | undefined) =>
      ({ resource: 'sales', format: 'ndjson', billing_cycle_id }) as const
    const cyclesIn = (content: string) => pluck(rowsIn(content), 'billing_cycle_id')
    const all = cyclesIn((await exportAs(kurta, sales(undefined))).content)
    assert.equal(all.sort(), [own, null].sort(), 'one is rejected')
    const { job, content } = await exportAs(kurta, sales(own))
    assert.equal([cyclesIn(content), job.rows], [[own], 1])
    assert.equal(cyclesIn((await exportAs(admin, sales(own))).content), [own])
    for (const [actor, cycle] of [
      [kurta, other],
      [kurta, bed.platform.ids.next()],
      [ayesha, own],
    ] as const)
      assert.is(await outcomeOf(as(actor).startExport(sales(cycle))), 'not_found')
    const payouts = { ...sales(own), resource: 'payouts' } as const
    assert.is(await outcomeOf(as(kurta).startExport(payouts)), 'validation_failed')
  })

  it('returns a queued job without a file', async () => {
    const job = await as(world.bilal).startExport({ resource: 'clicks', format: 'csv' })
    assert.equal(
      [
        job.kind,
        job.resource,
        job.format,
        job.state,
        job.progress,
        job.rows,
        job.download_url,
        job.expires_at,
      ],
      ['export', 'clicks', 'csv', 'queued', 0, 0, null, null],
    )
    assert.is(await outcomeOf(openExportFile(bed.platform, world.bilal.userId, job.id)), 'not_found')
    await drainExports(bed.platform)
    const done = await as(world.bilal).get({ id: job.id })
    assert.is(done.download_url, `http://127.0.0.1:3000/jobs/${job.id}/file`)
  })

  it('exports rows from `from` (inclusive) to `to` (exclusive)', async () => {
    const start = bed.clock.now()
    for (let hour = 1; hour <= 3; hour += 1) {
      bed.clock.pass(HOUR)
      await addSales(bed.platform, [saleRow(bed.platform, world, world.links[2])])
    }
    const [from, to] = [isoTime(start + HOUR), isoTime(start + 3 * HOUR)]
    const between = await exportAs(world.bilal, { resource: 'sales', format: 'ndjson', from, to })
    assert.equal(pluck(rowsIn(between.content), 'created_at'), [isoTime(start + 2 * HOUR), from])
    const sales = { resource: 'sales', format: 'csv' } as const
    for (const period of [{ from: to }, { to: from }])
      assert.is((await exportAs(world.bilal, { ...sales, ...period })).job.rows, 1)
    const never = as(world.bilal).startExport({ ...sales, from: to, to })
    assert.is(await outcomeOf(never), 'validation_failed')
  })

  it('limits each user to five unfinished exports, also for concurrent requests', async () => {
    const start = (actor: Actor) => outcomeOf(as(actor).startExport({ resource: 'sales', format: 'csv' }))
    const outcomes = await Promise.all(Array.from({ length: 9 }, () => start(world.shoes)))
    assert.equal(outcomes.sort(), [...Array(4).fill('conflict'), ...Array(5).fill('ok')])
    for (const actor of [world.kurta, world.shoes]) {
      assert.is(await start(actor), 'ok')
      await drainExports(bed.platform)
    }
  })

  it('counts the rows that it then writes', async () => {
    const jobs = await columnsOf(bed.platform, 'export_jobs', ['resource', 'role', 'rows_total', 'rows_done'])
    assert.ok(jobs.length > 30)
    for (const job of jobs) assert.is(job.rows_total, job.rows_done, `${job.resource} for ${job.role}`)
  })

  it('lists the jobs that a user started, newest first, page by page', async () => {
    const jobs = await columnsOf(bed.platform, 'export_jobs', ['id', 'user_id'])
    for (const actor of [world.kurta, world.ayesha, world.admin]) {
      const own = jobs.filter(({ user_id }) => user_id === actor.userId)
      const first = await as(actor).list({ limit: 2 })
      const rest = await as(actor).list({ limit: 100, cursor: first.next_cursor ?? '' })
      const listed = [...first.items, ...rest.items]
      assert.equal(pluck(listed, 'id'), pluck(own, 'id').sort().reverse())
      assert.equal(listed[0], await as(actor).get({ id: listed[0]?.id ?? '' }))
    }
  })

  it('makes CSV that spreadsheets show right, if asked to', async () => {
    const order_id = '820982911946154508'
    await addSales(bed.platform, [{ ...saleRow(bed.platform, world, world.links[0]), order_id }])
    const sales = { resource: 'sales', format: 'csv' } as const
    const { content } = await exportAs(world.kurta, { ...sales, excel: true })
    assert.ok(content.startsWith('\ufeffid,'), content)
    assert.ok(content.includes(`,"=""${order_id}""",#1001,`), content)
    const plain = (await exportAs(world.kurta, sales)).content
    assert.ok(plain.startsWith('id,') && plain.includes(`,${order_id},#1001,`), plain)
    const asLines = { resource: 'sales', format: 'ndjson', excel: true } as const
    assert.is(await outcomeOf(as(world.kurta).startExport(asLines)), 'validation_failed')
  })

  it.run()
}
