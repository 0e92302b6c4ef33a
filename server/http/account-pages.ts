import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ERROR_STATUS } from '../../shared/error-codes.ts'
import { EVENTS, type MailEvent } from '../../shared/events.ts'
import { readUnsubscribeToken, unsubscribe } from '../notifications/channels/mail/notifications.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { acceptsHtml, type Guard, htmlReply, pagePolicy, serveAsset, taskPage, type Words } from './pages.ts'

/** The pages load their own files only, and send the token to this service only. */
const SCRIPT_POLICY = pagePolicy("script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:")
const FORM_POLICY = pagePolicy("style-src 'self'; img-src data:", "'self'")
/** Mail programs send `List-Unsubscribe=One-Click`. */
const BODY_LIMIT = 4096

type Say = (words: Words) => string

const STYLE = '<link rel="stylesheet" href="../docs/pages.css">'
const SCRIPT = '\n<script type="module" src="account.js"></script>'

/** What `account.js` says in place of a problem's own text, which is English. */
const TEXTS: Record<string, Words> = {
  expired: {
    en: 'This link was used already or has expired.',
    ur: 'یہ لنک استعمال ہو چکا ہے یا اس کی مدت ختم ہو گئی ہے۔',
  },
  failed: {
    en: 'The service does not answer. Try again shortly.',
    ur: 'سروس جواب نہیں دے رہی۔ تھوڑی دیر بعد دوبارہ کوشش کریں۔',
  },
  second_factor_required: {
    en: 'Enter the code of your authenticator app too.',
    ur: 'اپنی آتھنٹیکیٹر ایپ کا کوڈ بھی لکھیں۔',
  },
  invalid_credentials: {
    en: 'The e-mail address, the password or the code is wrong.',
    ur: 'ای میل پتہ، پاس ورڈ یا کوڈ غلط ہے۔',
  },
  rate_limited: {
    en: 'Too many attempts. Try again later.',
    ur: 'بہت زیادہ کوششیں ہوئیں۔ کچھ دیر بعد دوبارہ کوشش کریں۔',
  },
  password: { en: 'This password', ur: 'یہ پاس ورڈ قبول نہیں ہوا:' },
}

const field = (label: string, attributes: string) => `<label>${label}\n<input ${attributes} required></label>`
const EMAIL_FIELD = (say: Say) =>
  field(
    say({ en: 'E-mail address', ur: 'ای میل پتہ' }),
    'name="email" type="email" autocomplete="username" dir="ltr"',
  )

/** A form that `account.js` sends, and the one that it shows when the link is not valid. */
function forms(
  id: string,
  [first, done]: [string, string],
  [again, againDone]: [string, string],
  say: Say,
): string {
  return `<form id="${id}" data-done="${done}">
${first}
</form>
<p id="answer" role="status" dir="auto"></p>
<form id="${id}-again" data-done="${againDone}" hidden>
${again}
<button>${say({ en: 'Send a new one', ur: 'نیا لنک بھیجیں' })}</button>
</form>
<noscript><p>${say({ en: 'This page needs JavaScript.', ur: 'اس صفحے کے لیے جاوا اسکرپٹ ضروری ہے۔' })}</p></noscript>`
}

const PAGES: Record<string, { title: Words; content(say: Say): string }> = {
  'verify-email': {
    title: { en: 'Verify your e-mail address', ur: 'اپنے ای میل پتے کی تصدیق کریں' },
    content: (say) =>
      forms(
        'verify',
        [
          `<p>${say({
            en: 'Confirm that the address to which the e-mail was sent is yours.',
            ur: 'تصدیق کریں کہ جس پتے پر ای میل آئی ہے وہ آپ کا ہے۔',
          })}</p>
<button>${say({ en: 'Verify e-mail address', ur: 'پتے کی تصدیق کریں' })}</button>`,
          say({
            en: 'Your e-mail address is verified. You can close this page.',
            ur: 'آپ کے ای میل پتے کی تصدیق ہو گئی۔ آپ یہ صفحہ بند کر سکتے ہیں۔',
          }),
        ],
        [
          `<p>${say({
            en: 'If your address is not verified yet, log in to have a new link sent.',
            ur: 'اگر پتے کی تصدیق ابھی نہیں ہوئی تو نیا لنک منگوانے کے لیے لاگ ان کریں۔',
          })}</p>
${EMAIL_FIELD(say)}
${field(say({ en: 'Password', ur: 'پاس ورڈ' }), 'name="password" type="password" autocomplete="current-password" dir="ltr"')}
<label class="code" hidden>${say({ en: 'Code of your authenticator app', ur: 'آتھنٹیکیٹر ایپ کا کوڈ' })}
<input name="code" autocomplete="one-time-code" dir="ltr"></label>`,
          say({
            en: 'A new link is on its way, unless the address is verified already.',
            ur: 'نیا لنک بھیج دیا گیا ہے، سوائے اس کے کہ پتے کی تصدیق پہلے ہو چکی ہو۔',
          }),
        ],
        say,
      ),
  },
  'reset-password': {
    title: { en: 'Choose a new password', ur: 'نیا پاس ورڈ چنیں' },
    content: (say) =>
      forms(
        'reset',
        [
          `${field(
            say({ en: 'New password, at least 10 characters', ur: 'نیا پاس ورڈ، کم از کم 10 حروف' }),
            'name="new_password" type="password" autocomplete="new-password" minlength="10" maxlength="256" dir="ltr"',
          )}
<button>${say({ en: 'Set password', ur: 'پاس ورڈ محفوظ کریں' })}</button>`,
          say({
            en: 'Your password is changed, and all sessions have ended. Log in with the new one.',
            ur: 'آپ کا پاس ورڈ بدل گیا ہے اور تمام سیشن ختم ہو گئے ہیں۔ نئے پاس ورڈ سے لاگ ان کریں۔',
          }),
        ],
        [
          EMAIL_FIELD(say),
          say({
            en: 'If there is an account with this address, a new link is on its way.',
            ur: 'اگر اس پتے کا اکاؤنٹ موجود ہے تو نیا لنک بھیج دیا گیا ہے۔',
          }),
        ],
        say,
      ),
  },
}

/** The pages that mailed links lead to. They call the API like any client. */
export function registerAccountPages(server: FastifyInstance, platform: Platform, guard: Guard): void {
  for (const [name, { title, content }] of Object.entries(PAGES)) {
    server.get(`/account/${name}`, { onRequest: guard }, async (request, reply) => {
      const page = taskPage(request, platform, { title, content, head: STYLE + SCRIPT, texts: TEXTS })
      return htmlReply(reply, SCRIPT_POLICY).send(page)
    })
  }
  serveAsset(server, '/account/account.js', new URL('pages/account.js', import.meta.url))
  server.register(async (scope) => registerUnsubscribe(scope, platform, guard))
}

/** What the mails about an event are about, as in the English `EVENTS`. */
const ABOUT_IN_URDU: Record<MailEvent, string> = {
  'application.created': 'نئی درخواستیں',
  'application.decided': 'آپ کی درخواستوں پر فیصلے',
  'link.ended': 'ختم ہونے والے لنک',
  'sale.accepted': 'آپ کی پہلی فروخت',
  'credit_request.decided': 'آپ کی کریڈٹ کی درخواستوں پر فیصلے',
  'billing_cycle.closed': 'انوائس',
  'billing_cycle.overdue': 'واجب الادا انوائس',
  'store.silent': 'اسٹور جن سے کچھ نہیں آ رہا',
  'store.rejecting': 'اسٹور جن کی ترسیل مسترد ہو رہی ہے',
  'payout.paid': 'ادائیگیاں',
  'payout.failed': 'ناکام ادائیگیاں',
}

/**
 * One-click unsubscribing (RFC 8058). The page needs a click, because mail scanners follow links; mail programs and its form send a POST.
 * The token in the address stands for the log-in, so the body is ignored.
 */
function registerUnsubscribe(scope: FastifyInstance, platform: Platform, guard: Guard): void {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: BODY_LIMIT }, (_request, _body, done) =>
    done(null, undefined),
  )
  const url = '/account/unsubscribe'
  scope.get(url, { onRequest: guard }, async (request, reply) =>
    answer(request, reply, platform, async (token) => {
      const { event } = readUnsubscribeToken(platform, token)
      return {
        title: { en: 'Unsubscribe', ur: 'ای میلز بند کریں' },
        content: (say) => `<p>${say({
          en: `You receive e-mails about ${EVENTS[event].mail}.`,
          ur: `آپ کو ان کے بارے میں ای میلز ملتی ہیں: ${ABOUT_IN_URDU[event]}۔`,
        })}</p>
<form method="post"><button>${say({ en: 'Stop these e-mails', ur: 'یہ ای میلز بند کریں' })}</button></form>`,
      }
    }),
  )
  scope.post(url, { onRequest: guard }, async (request, reply) =>
    answer(request, reply, platform, async (token) => {
      const event = await unsubscribe(platform, token)
      return {
        title: { en: 'Unsubscribed', ur: 'ای میلز بند ہو گئیں' },
        content: (say) =>
          `<p>${say({
            en: `You receive no more e-mails about ${EVENTS[event].mail}.`,
            ur: `اب آپ کو ان کے بارے میں ای میلز نہیں ملیں گی: ${ABOUT_IN_URDU[event]}۔`,
          })}</p>`,
      }
    }),
  )
}

type PageText = Pick<Parameters<typeof taskPage>[2], 'title' | 'content'>

const NOT_VALID: PageText = {
  title: { en: 'This link is not valid', ur: 'یہ لنک درست نہیں ہے' },
  content: (say) =>
    `<p>${say({
      en: 'Turn e-mails off in your account’s notifications, or reply to one with “unsubscribe”.',
      ur: 'ای میلز اپنے اکاؤنٹ کی اطلاعات میں بند کریں، یا کسی ای میل کے جواب میں “unsubscribe” لکھیں۔',
    })}</p>`,
}

/** A browser gets a refusal as a page. */
async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  platform: Platform,
  textOf: (token: string) => Promise<PageText>,
) {
  htmlReply(reply, FORM_POLICY)
  const { token } = request.query as Record<string, unknown>
  const send = (text: PageText) => reply.send(taskPage(request, platform, { ...text, head: STYLE }))
  try {
    return send(await textOf(typeof token === 'string' ? token : ''))
  } catch (error) {
    if (!(error instanceof Refusal) || !acceptsHtml(request)) throw error
    reply.code(ERROR_STATUS[error.code])
    return send(NOT_VALID)
  }
}
