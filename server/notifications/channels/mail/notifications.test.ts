import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { proofDialects } from '../../../test/testkit/proof-size.ts'
import { openWebTestbed, type WebTestbed } from '../../../test/testkit/web.ts'
import { register } from '../../../test/testkit/web-people.ts'

for (const dialect of proofDialects()) {
  const it = suite<{ bed: WebTestbed; token: string }>(`choices of mails on ${dialect}`)
  it.before(async (world) => {
    world.bed = await openWebTestbed(dialect)
    world.token = (await register(world.bed)).token
  })
  it.after(({ bed }) => bed.close())

  it('are refused whole when one is no event of the account, with the reason', async ({ bed, token }) => {
    const change = (email: object) => bed.ask('PATCH', '/me/notifications', { token, body: { email } })
    const read = async () => (await bed.ask('GET', '/me/notifications', { token })).body
    const before = await read()
    const all = { 'application.decided': true, 'link.ended': true, 'sale.accepted': true }
    assert.equal(before, { email: { ...all, 'payout.paid': true, 'payout.failed': true } })
    const unknown =
      'is not an event of GET /me/notifications; e-mails about the security of an account cannot be turned off'
    const cases: [event: string, message: string][] = [
      ['password_changed', unknown],
      ['payout.lost', unknown],
      ['__proto__x', unknown],
      ['store.silent', 'is not an event for the role creator'],
    ]
    for (const [event, message] of cases) {
      const answer = await change({ 'payout.paid': false, [event]: false })
      assert.equal([answer.status, answer.body.code], [400, 'validation_failed'])
      assert.equal(answer.body.issues, [{ path: `email.${event}`, message }])
    }
    assert.equal((await change({ 'payout.paid': 'no' })).body.issues, [
      { path: 'email.payout.paid', message: 'must be true or false' },
    ])
    assert.equal(await read(), before)
    assert.is((await change({})).status, 200)
    const changed = { email: { ...all, 'payout.paid': false, 'payout.failed': true } }
    assert.equal((await change({ 'payout.paid': false })).body, changed)
    assert.equal(await read(), changed)
  })

  it.run()
}
