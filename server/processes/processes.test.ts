import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readConfig } from '../platform/config.ts'
import type { Platform } from '../platform/platform.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { columnsOf, rowsOf } from '../test/testkit/rows.ts'
import { HOUR, openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { joinProcesses, refuseOtherMoneySettings } from './processes.service.ts'

const FEE = { PLATFORM_FEE_RATE: '12' }

for (const dialect of proofDialects()) {
  const it = suite<{ bed: Testbed }>(`running processes on ${dialect}`)
  it.before.each(async (context) => {
    context.bed = await openTestbed(dialect)
  })
  it.after.each(({ bed }) => bed.close())

  const processWith = ({ platform }: Testbed, settings: Record<string, string> = {}): Platform => ({
    ...platform,
    clock: { now: () => Date.now() },
    config: readConfig({ DATABASE_URL: platform.config.DATABASE_URL, ...settings }),
  })
  const audited = ({ platform }: Testbed) =>
    columnsOf(platform, 'audit_entries', ['before', 'after'], { action: 'settings.change' })
  const messageOf = (work: Promise<unknown>) =>
    work.then(
      () => 'done',
      (error: Error) => error.message,
    )

  it('agree on the settings that decide amounts', async ({ bed }) => {
    const first = await joinProcesses(processWith(bed))
    const same = await joinProcesses(processWith(bed, { PORT: '1' }))
    for (const [name, value] of Object.entries({
      ...FEE,
      PAYOUT_THRESHOLD: '5.00',
      BILLING_PERIOD: 'daily',
      BILLING_TIMEZONE: 'UTC',
    })) {
      const other = processWith(bed, { [name]: value })
      const refusal = new RegExp(`^setting ${name}: is .* in process ${process.pid} `)
      assert.match(await messageOf(joinProcesses(other)), refusal)
      assert.match(await messageOf(refuseOtherMoneySettings(other.database.reader, other.config)), refusal)
    }
    await Promise.all([first.stop(), same.stop()])
    assert.equal(await audited(bed), [])
  })

  it('may change the settings when no other runs, which is audited', async ({ bed }) => {
    await (await joinProcesses(processWith(bed))).stop()
    const changed = await joinProcesses(processWith(bed, FEE))
    const [entry, ...others] = await audited(bed)
    assert.equal(others, [])
    const rateIn = (settings: string | null = '{}') => JSON.parse(settings ?? '{}').PLATFORM_FEE_RATE
    assert.is.not(rateIn(entry?.before), rateIn(entry?.after))
    await changed.stop()
  })

  it('are gone 30 seconds after their last heartbeat', async ({ bed }) => {
    const { database } = bed.platform
    const crashed = await joinProcesses(processWith(bed))
    const age = (ms: number) =>
      database.transaction((tx) => sql`update processes set seen_at = seen_at - ${ms}`.execute(tx))
    await age(20_000)
    assert.match(await messageOf(joinProcesses(processWith(bed, FEE))), 'PLATFORM_FEE_RATE')
    await age(10_001)
    await (await joinProcesses(processWith(bed, FEE))).stop()
    assert.equal(await rowsOf(bed.platform, 'processes'), [])
    await crashed.stop()
  })

  if (dialect === 'postgresql') {
    it('do not start with a clock an hour off, and know one that is seconds off', async ({ bed }) => {
      const off = (ms: number) => ({ ...processWith(bed), clock: { now: () => Date.now() + ms } })
      for (const [ms, how] of [
        [HOUR, 'ahead of'],
        [-HOUR, 'behind'],
      ] as const) {
        const refusal = await messageOf(joinProcesses(off(ms)))
        assert.match(refusal, `unavailable: This machine's clock is 60 min ${how} the database server's`)
      }
      assert.equal(await rowsOf(bed.platform, 'processes'), [])
      const behind = await joinProcesses(off(-15_000))
      assert.ok(behind.clockSkew() < -10_000 && behind.clockSkew() > -30_000, String(behind.clockSkew()))
      await behind.stop()
    })
  }

  it.run()
}
