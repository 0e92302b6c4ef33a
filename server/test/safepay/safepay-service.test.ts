// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { closeDueCycles } from '../../billing/close-cycle.service.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { registerWebhook } from '../../processor/safepay/safepay-account.ts'
import { SafepayApi } from '../../processor/safepay/safepay-api.ts'
import { safepayOptions } from '../../processor/safepay/safepay-processor.ts'
import { verifyBooks } from '../../verification/verify-books.ts'
import { testDialects } from '../testkit/databases.ts'
import { eventually } from '../testkit/eventually.ts'
import { cast, follow, orderBody, report } from '../testkit/outside-cast.ts'
import { call, openServiceBed } from '../testkit/service-bed.ts'
import { SafepayDouble } from './safepay-double.ts'
import { SAFEPAY_SETTINGS } from './safepay-market.ts'

const YEAR_MS = 366 * 86_400_000
const IBAN = 'PK36SCBL0000001123456702'

for (const dialect of testDialects()) {
  const it = suite(`a service with Safepay on ${dialect}`)

  it('goes from an order to a paid payout over HTTP, with signed events', async () => {
    const double = await SafepayDouble.open()
    const bed = await openServiceBed(dialect, { ...SAFEPAY_SETTINGS, SAFEPAY_URL: double.url })
    const { app } = bed.service
    try {
      const { merchant, creator, slug } = await cast(bed)
      const api = new SafepayApi(safepayOptions(app.platform.config))
      const registered = await registerWebhook(api, { url: `${bed.url}/webhooks/processor`, rotate: false })
      await api.close()
      assert.is(registered.change, 'created')
      for (const endpoint of double.endpoints) endpoint.secret = SAFEPAY_SETTINGS.PROCESSOR_WEBHOOK_SECRETS
      await report(bed, orderBody('9001', await follow(bed, slug), '24999.99'), 'first')
      await eventually(
        () => call(bed.url, 'GET', '/sales', { token: merchant }),
        (answer) => answer.body.items.length === 1,
      )
      const body = { billing_account: { iban: IBAN } }
      assert.is((await call(bed.url, 'PATCH', '/me', { token: merchant, body })).status, 200)
      await closeDueCycles(app.platform, { asOf: Date.now() + YEAR_MS })
      const [request] = await eventually(
        async () => double.payments,
        (payments) => payments.length === 1,
      )
      if (!request) throw new Error('nothing was requested')
      assert.equal(await double.deliver(double.settle(request, 'paid')), [200, 200])
      await eventually(
        () => call(bed.url, 'GET', '/billing-cycles', { token: merchant }),
        (answer) => answer.body.items[0].state === 'charged',
      )
      await runPayouts(app.platform, app.processor)
      const [, payout] = await eventually(
        async () => double.payments,
        (payments) => payments.length === 2,
      )
      if (!payout) throw new Error('nothing was paid out')
      assert.equal([payout.type, payout.body.amount], ['PAYOUT', '3125'])
      assert.equal(await double.deliver(double.settle(payout, 'paid')), [200, 200])
      await eventually(
        () => call(bed.url, 'GET', '/payouts?state=paid', { token: creator }),
        (answer) => answer.body.items.length === 1,
      )
      const results = await verifyBooks(app.platform)
      assert.equal(
        results.filter(({ breaches }) => breaches.length > 0),
        [],
      )
      assert.equal([double.complaints, double.dead], [[], []])
    } finally {
      await bed.close()
      await double.close()
    }
  })

  it.run()
}
