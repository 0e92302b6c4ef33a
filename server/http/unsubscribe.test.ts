import * as assert from 'uvu/assert'
import { readNotifications, unsubscribeUrl } from '../notifications/channels/mail/notifications.service.ts'
import { addUser } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { type WebTestbed, webSuite } from '../test/testkit/web.ts'
import { register } from '../test/testkit/web-people.ts'

const ONE_CLICK = 'List-Unsubscribe=One-Click'

for (const dialect of proofDialects()) {
  const it = webSuite<{ path: string; isOn: () => Promise<boolean | undefined> }>(
    `one-click unsubscribing on ${dialect}`,
    dialect,
  )
  it.before.each(async (context) => {
    const { platform } = context.bed
    const { userId } = await addUser(platform, 'merchant')
    const { pathname, search } = new URL(unsubscribeUrl(platform, userId, 'store.silent'))
    assert.is(pathname, '/account/unsubscribe')
    context.path = `${pathname}${search}`
    context.isOn = async () =>
      (await readNotifications(platform, { userId, role: 'merchant' })).email['store.silent']
  })

  const send = async ({ base }: WebTestbed, path: string, init?: RequestInit) => {
    const answer = await fetch(`${base}${path}`, { redirect: 'manual', ...init })
    const { headers } = answer
    return { status: answer.status, type: headers.get('content-type'), headers, text: await answer.text() }
  }

  it('turns the mails about one event off, without a log-in, repeatably', async ({ bed, path, isOn }) => {
    for (const body of [new URLSearchParams(ONE_CLICK), formData(), undefined]) {
      const { status, text } = await send(bed, path, { method: 'POST', ...(body && { body }) })
      assert.is(status, 200)
      assert.match(text, 'You receive no more e-mails about stores that send nothing.')
      assert.is(await isOn(), false)
    }
    const off = await rowsOf(bed.platform, 'mail_opt_outs', {}, 'event')
    assert.equal(pluck(off, 'event'), ['store.silent'], 'nothing else is off')
  })

  it('needs a click on its page, since mail scanners follow links', async ({ bed, path, isOn }) => {
    for (const method of ['GET', 'HEAD']) assert.is((await send(bed, path, { method })).status, 200)
    assert.is(await isOn(), true)
    const { headers, text } = await send(bed, path)
    assert.match(text, '<form method="post"><button>')
    const urdu = await send(bed, `${path}&lang=ur`)
    assert.match(urdu.text, /dir="rtl".*اسٹور جن سے کچھ نہیں آ رہا.*<form method="post"><button>/s)
    const [, back = ''] = /href="(\?token=[^"]+)" lang="en"/.exec(urdu.text) ?? []
    const english = await send(bed, `/account/unsubscribe${back.replaceAll('&#38;', '&')}`)
    assert.match(english.text, '<html lang="en"')
    assert.not.match(text, '<script')
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none';.* form-action 'self'/)
    assert.equal([headers.get('cache-control'), headers.get('referrer-policy')], ['no-store', 'no-referrer'])
  })

  it('refuses a token for another account, event or key, or none', async ({ bed, path, isOn }) => {
    const other = await addUser(bed.platform, 'merchant')
    const [address = '', token = ''] = path.split('?token=')
    const wrong = [
      token.replace('store.silent', 'sale.accepted'),
      token.replace(/^[0-9a-f-]{36}/, other.userId),
      `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`,
      token.replace('store.silent', 'password_changed'),
      `${token}0`,
      token.slice(0, -1),
      'x'.repeat(4000),
      '',
    ]
    for (const query of [...wrong.map((text) => `?token=${text}`), '', `?token=${token}&token=${token}`]) {
      for (const method of ['GET', 'POST']) {
        const { status, type, text } = await send(bed, `${address}${query}`, { method })
        assert.equal([status, type], [404, 'application/problem+json'], query)
        assert.is(JSON.parse(text).code, 'not_found')
      }
    }
    const shown = await send(bed, `${address}?token=x`, { headers: { accept: 'text/html,*/*' } })
    assert.equal([shown.status, shown.type], [404, 'text/html; charset=utf-8'])
    assert.match(shown.text, '<h1>This link is not valid</h1>')
    assert.is(await isOn(), true)
  })

  it('refuses choices of mails whole when one is no event of the account, with the reason', async ({
    bed,
  }) => {
    const { token } = await register(bed)
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

function formData(): FormData {
  const form = new FormData()
  form.set('List-Unsubscribe', 'One-Click')
  return form
}
