import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode } from '../../shared/error-codes.ts'
import type { ProblemAnswer } from '../platform/api/problem.ts'
import type { Platform } from '../platform/platform.ts'
import { problemHeaders } from './errors.ts'
import { htmlReply, languageOf, pagePolicy, STYLE_SHEET, taskPage, type Words } from './pages.ts'

/** Part of the page: under a mistyped path, a relative address of a file would lead nowhere. */
const STYLE = readFileSync(STYLE_SHEET, 'utf8')
const POLICY = pagePolicy(`img-src data:; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`)

interface LinkPage {
  title: Words
  text: Words
  /** Of a link that loads the page again. */
  again?: Words
}

const DEAD_LINKS = new Map<ErrorCode, LinkPage>([
  [
    'not_found',
    {
      title: { en: 'This link does not work', ur: 'یہ لنک کام نہیں کر رہا' },
      text: {
        en: 'Check that you have the whole link, or ask the person who shared it for a new one.',
        ur: 'دیکھ لیں کہ لنک پورا ہے، یا جس نے یہ بھیجا ہے اس سے نیا لنک مانگ لیں۔',
      },
    },
  ],
  [
    'gone',
    {
      title: { en: 'This link is no longer active', ur: 'یہ لنک اب فعال نہیں ہے' },
      text: {
        en: 'The shop cannot be reached through this link at the moment.',
        ur: 'اس لنک سے دکان تک فی الحال نہیں پہنچا جا سکتا۔',
      },
    },
  ],
])

const FAILED: LinkPage = {
  title: { en: 'Please try again in a moment', ur: 'تھوڑی دیر بعد دوبارہ کوشش کریں' },
  text: {
    en: 'The link could not be opened just now.',
    ur: 'یہ لنک ابھی نہیں کھل سکا۔',
  },
  again: { en: 'Try again', ur: 'دوبارہ کوشش کریں' },
}

/** Whether the link leads nowhere, and not only now. */
export function isDeadLink({ body }: ProblemAnswer): boolean {
  return DEAD_LINKS.has(body.code)
}

/** The page for a visitor whose link leads nowhere, in both languages: a phone's language says little about its owner's. */
export function sendLinkPage(
  request: FastifyRequest,
  reply: FastifyReply,
  platform: Platform,
  problem: ProblemAnswer,
): void {
  const { title, text, again } = DEAD_LINKS.get(problem.body.code) ?? FAILED
  const head = `<style>${STYLE}</style>`
  const other = languageOf(request) === 'en' ? 'ur' : 'en'
  const contentIn = (say: (words: Words) => string) =>
    `<p>${say(text)}</p>${again ? `\n<p><a href="">${say(again)}</a></p>` : ''}`
  const second = `<section lang="${other}" dir="${other === 'ur' ? 'rtl' : 'ltr'}">
<h2>${title[other]}</h2>
${contentIn((words) => words[other])}
</section>`
  const content = (say: (words: Words) => string) => `${contentIn(say)}\n${second}`
  const page = taskPage(request, platform, { title, head, content })
  htmlReply(reply.code(problem.status).headers(problemHeaders(problem)), POLICY).send(page)
}
