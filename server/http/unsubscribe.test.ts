import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readNotifications, unsubscribeUrl } from '../notifications/channels/mail/notifications.service.ts'
import { addUser } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'

const ONE_CLICK = 'List-Unsubscribe=One-Click'

for (const dialect of proofDialects()) {
  const it = suite<{ bed: WebTestbed; path: string; isOn: () => Promise<boolean | undefined> }>(
    `one-click unsubscribing on ${dialect}`,
  )
  it.before(async (context) => {
    context.bed = await openWebTestbed(dialect)
  })
  it.before.each(async (context) => {
    const { platform } = context.bed
    const { userId } = await addUser(platform, 'merchant')
    const { pathname, search } = new URL(unsubscribeUrl(platform, userId, 'store.silent'))
    assert.is(pathname, '/account/unsubscribe')
    context.path = `${pathname}${search}`
    context.isOn = async () =>
      (await readNotifications(platform, { userId, role: 'merchant' })).email['store.silent']
  })
  it.after(({ bed }) => bed.close())

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
    const audience = await bed.platform.database.reader.selectFrom('mail_opt_outs').selectAll().execute()
    assertMapped(audience, ({ event }) => event, ['store.silent'], 'nothing else is off')
  })

  it('needs a click on its page, since mail scanners follow links', async ({ bed, path, isOn }) => {
    for (const method of ['GET', 'HEAD']) assert.is((await send(bed, path, { method })).status, 200)
    assert.is(await isOn(), true)
    const { headers, text } = await send(bed, path)
    assert.match(text, '<form method="post"><button>')
    const urdu = await send(bed, `${path}&lang=ur`)
    assert.match(urdu.text, /dir="rtl".*اسٹور جن سے کچھ نہیں آ رہا.*<form method="post"><button>/s)
    const [, back = ''] = /href="(\?token=[^"]+)" lang="en"/.exec(urdu.text) ?? []
    assert.match(
      (await send(bed, `/account/unsubscribe${back.replaceAll('&#38;', '&')}`)).text,
      '<html lang="en"',
    )
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

  it.run()
}

function formData(): FormData {
  const form = new FormData()
  form.set('List-Unsubscribe', 'One-Click')
  return form
}
