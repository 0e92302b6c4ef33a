import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import type { ErrorCode } from '../../shared/error-codes.ts'
import type { ProblemAnswer } from '../platform/api/problem.ts'
import { problemHeaders } from './errors.ts'
import { htmlPage, htmlReply, pagePolicy } from './pages.ts'

/** Part of the page: under a mistyped path, a relative address of a file would lead nowhere. */
const STYLE = `
body { margin: 0; padding: 24px 12px; font: 16px/1.5 Arial, Helvetica, sans-serif; color: #1f2937; background: #f3f4f6 }
main { max-width: 420px; margin: 0 auto; padding: 24px; border-radius: 8px; background: #fff }
h1, h2 { margin: 0 0 8px; font-size: 22px; line-height: 1.3 }
p { margin: 0 0 8px }
section {
  margin-top: 24px; padding-top: 24px; border-top: 1px solid #9ca3af;
  font-family: "Noto Nastaliq Urdu", "Noto Naskh Arabic", Tahoma, Arial, sans-serif; line-height: 2
}
a { color: #14733f }
@media (prefers-color-scheme: dark) {
  body { color: #e5e7eb; background: #111827 }
  main { background: #1f2937 }
  a { color: #6ee7a8 }
}
`
const POLICY = pagePolicy(`style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`)

interface Text {
  title: string
  text: string
}

const page = (english: Text, urdu: Text, [again, againUrdu] = ['', '']) =>
  htmlPage({
    title: english.title,
    head: `<style>${STYLE}</style>`,
    body: `<main>
<h1>${english.title}</h1>
<p>${english.text}</p>${again}
<section lang="ur" dir="rtl">
<h2>${urdu.title}</h2>
<p>${urdu.text}</p>${againUrdu}
</section>
</main>`,
  })

/** By error code. */
const DEAD_LINKS = new Map<ErrorCode, string>([
  [
    'not_found',
    page(
      {
        title: 'This link does not work',
        text: 'Check that you have the whole link, or ask the person who shared it for a new one.',
      },
      {
        title: 'یہ لنک کام نہیں کر رہا',
        text: 'دیکھ لیں کہ لنک پورا ہے، یا جس نے یہ بھیجا ہے اس سے نیا لنک مانگ لیں۔',
      },
    ),
  ],
  [
    'gone',
    page(
      {
        title: 'This link is no longer active',
        text: 'The shop cannot be reached through this link at the moment.',
      },
      { title: 'یہ لنک اب فعال نہیں ہے', text: 'اس لنک سے دکان تک فی الحال نہیں پہنچا جا سکتا۔' },
    ),
  ],
])

const FAILED = page(
  { title: 'Please try again in a moment', text: 'The link could not be opened just now.' },
  { title: 'تھوڑی دیر بعد دوبارہ کوشش کریں', text: 'یہ لنک ابھی نہیں کھل سکا۔' },
  ['\n<p><a href="">Try again</a></p>', '\n<p><a href="">دوبارہ کوشش کریں</a></p>'],
)

/** Whether the link leads nowhere, and not only now. */
export function isDeadLink({ body }: ProblemAnswer): boolean {
  return DEAD_LINKS.has(body.code)
}

/** The page for a visitor whose link leads nowhere, in English and Urdu. */
export function sendLinkPage(reply: FastifyReply, problem: ProblemAnswer): void {
  const text = DEAD_LINKS.get(problem.body.code) ?? FAILED
  htmlReply(reply.code(problem.status).headers(problemHeaders(problem)), POLICY).send(text)
}
