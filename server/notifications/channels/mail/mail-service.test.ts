import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type MailServerDouble, startMailServer } from '../../../test/testkit/mail-server.ts'
import { proofDialects } from '../../../test/testkit/proof-size.ts'
import { call, openServiceBed, type ServiceBed } from '../../../test/testkit/service-bed.ts'

for (const dialect of proofDialects()) {
  const it = suite(`a service with a mail server on ${dialect}`)
  let server: MailServerDouble
  let bed: ServiceBed
  it.before(async () => {
    server = await startMailServer()
    const SMTP_URL = `smtp://127.0.0.1:${server.port}`
    bed = await openServiceBed(dialect, {
      ...{ SMTP_URL, MAIL_FROM: 'Bazaar <no-reply@bazaar.pk>', REQUIRE_VERIFIED_EMAIL: 'true' },
    })
  })
  it.after(async () => {
    await bed.close()
    await server.close()
  })

  const tokenIn = (index: number) => {
    const source = server.received[index]?.source.replaceAll('=\r\n', '').replaceAll('=3D', '=') ?? ''
    return /#token=([\w-]{43})\r\n/.exec(source)?.[1]
  }

  it('mails a new account its verification, and a forgotten password its link', async () => {
    const email = 'sana@example.pk'
    const registration = { email, password: 'a long passphrase', role: 'creator', display_name: 'ثنا' }
    const { body: opened } = await call(bed.url, 'POST', '/auth/register', { body: registration })
    await server.arrived(1)
    assert.equal(server.received[0]?.to, [email])
    assert.match(server.received[0]?.source ?? '', /^From: Bazaar <no-reply@bazaar.pk>\r$/m)
    assert.not.match(
      server.received[0]?.source ?? '',
      /^To: .*=\?/m,
      'no name before the address is verified',
    )

    const payout_destination = { iban: 'PK36SCBL0000001123456702', account_title: 'SANA' }
    const setDestination = () =>
      call(bed.url, 'PATCH', '/me', { token: opened.token, body: { payout_destination } })
    assert.is((await setDestination()).body.code, 'email_not_verified')
    const verified = await call(bed.url, 'POST', '/auth/verify-email', { body: { token: tokenIn(0) } })
    assert.is(verified.status, 204)
    assert.is((await setDestination()).status, 200)

    await server.arrived(2)
    assert.match(server.received[1]?.source ?? '', /^Subject: Your payout account was changed\r$/m)
    const asked = await call(bed.url, 'POST', '/auth/password-reset', { body: { email } })
    assert.equal([asked.status, asked.body], [202, { accepted: true }])
    await server.arrived(3)
    const body = { token: tokenIn(2), new_password: 'another passphrase' }
    assert.is((await call(bed.url, 'POST', '/auth/password-reset/confirm', { body })).status, 204)
    const login = await call(bed.url, 'POST', '/auth/login', { body: { email, password: body.new_password } })
    assert.is(login.status, 200)
    await server.arrived(4)
    assert.match(server.received[3]?.source ?? '', /^Subject: Your password was changed\r$/m)
    assert.match(server.received[3]?.source ?? '', /^To: =\?UTF-8\?/m)
  })

  it.run()
}
