import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type MailServerDouble,
  type ReceivedMail,
  startMailServer,
} from '../../../test/testkit/mail-server.ts'
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

  it('mails a new account its verification, and a change of its payout account under its name', async () => {
    const email = 'sana@example.pk'
    const registration = { email, password: 'a long passphrase', role: 'creator', display_name: 'ثنا' }
    const { token } = (await call(bed.url, 'POST', '/auth/register', { body: registration })).body
    await server.arrived(1)
    const [verification] = server.received as [ReceivedMail]
    assert.equal(verification.to, [email])
    assert.match(verification.source, /^From: Bazaar <no-reply@bazaar.pk>\r$/m)
    assert.not.match(verification.source, /^To: .*=\?/m, 'no name before the address is verified')

    const payout_destination = { iban: 'PK36SCBL0000001123456702', account_title: 'SANA' }
    const setDestination = () => call(bed.url, 'PATCH', '/me', { token, body: { payout_destination } })
    assert.is((await setDestination()).body.code, 'email_not_verified')
    const text = verification.source.replaceAll('=\r\n', '').replaceAll('=3D', '=')
    const body = { token: /#token=([\w-]{43})\r\n/.exec(text)?.[1] }
    assert.is((await call(bed.url, 'POST', '/auth/verify-email', { body })).status, 204)
    assert.is((await setDestination()).status, 200)
    await server.arrived(2)
    assert.match(server.received[1]?.source ?? '', /^Subject: Your payout account was changed\r$/m)
    assert.match(server.received[1]?.source ?? '', /^To: =\?UTF-8\?/m)
  })

  it.run()
}
