import type { MailText } from './mail-texts.ts'

/** A mail as its body parts; the subject is one line. */
export interface RenderedMail {
  subject: string
  text: string
  html: string
}

interface MailFrame {
  marketplace: string
  /** Where people go to act on the mail; `null` for nowhere. */
  home: string | null
  /** The recipient's name; `null` for none. */
  name: string | null
  /** Why the mail was sent and how to receive no more; the last line. */
  footer: string
}

const MAX_SUBJECT = 150

/**
 * Lays a mail out as plain text and as HTML that needs nothing from elsewhere. Text of users is escaped, stripped of characters that
 * change the direction of what follows, and isolated, so that Urdu and English lines keep their own direction.
 */
export function renderMail(mail: MailText, frame: MailFrame): RenderedMail {
  const subject = cut(oneLine(mail.subject), MAX_SUBJECT)
  const name = frame.name === null ? null : oneLine(frame.name)
  const details = mail.details.map(([label, value]): [string, string] => [label, oneLine(value)])
  return {
    subject,
    text: plainText({ ...mail, details }, { ...frame, name }),
    html: htmlText({ ...mail, subject, details }, { ...frame, name }),
  }
}

function plainText(mail: MailText, { marketplace, home, name, footer }: MailFrame): string {
  const parts = [
    name === null ? 'Hello,' : `Hello ${isolated(name)},`,
    ...mail.paragraphs.map(wrapped),
    ...(mail.details.length > 0
      ? [mail.details.map(([label, value]) => `${label}: ${isolated(value)}`).join('\n')]
      : []),
    ...(mail.button ? [`${mail.button.label}:\n${mail.button.url}`] : []),
    `-- \n${[marketplace, ...(home ? [home] : []), wrapped(footer)].join('\n')}`,
  ]
  return `${parts.join('\n\n')}\n`
}

/** Prose in lines of at most 76 columns. Addresses and details stay on one line each. */
function wrapped(prose: string): string {
  return prose.replace(/(.{1,76})(?: |$)/g, '$1\n').trimEnd()
}

const STYLE = {
  brand: 'margin:0 0 16px;font-weight:bold',
  body: 'margin:0;padding:24px 12px;background:#f3f4f6;color:#1f2937;font:16px/1.5 Arial,Helvetica,sans-serif',
  card: 'max-width:520px;margin:0 auto;padding:24px;background:#ffffff;border-radius:8px',
  label:
    'padding:4px 16px 4px 0;color:#4b5563;text-align:left;font-weight:normal;vertical-align:top;white-space:nowrap',
  value: 'padding:4px 0;text-align:left;overflow-wrap:anywhere',
  button:
    'display:inline-block;padding:10px 20px;border-radius:6px;background:#14733f;color:#ffffff;text-decoration:none',
  small: 'margin:16px 0 0;color:#4b5563;font-size:13px;overflow-wrap:anywhere',
}

function htmlText(mail: MailText, { marketplace, home, name, footer }: MailFrame): string {
  const greeting = name === null ? 'Hello,' : `Hello <bdi>${escaped(name)}</bdi>,`
  const rows = mail.details.map(
    ([label, value]) =>
      `<tr><th scope="row" style="${STYLE.label}">${escaped(label)}</th><td dir="auto" style="${STYLE.value}">${escaped(value)}</td></tr>`,
  )
  const { button } = mail
  const brand = home
    ? `<a href="${escaped(home)}" style="color:#14733f">${escaped(marketplace)}</a>`
    : escaped(marketplace)
  const parts = [
    `<p dir="auto" style="${STYLE.brand}">${brand}</p>`,
    `<p dir="auto" style="margin:0 0 16px">${greeting}</p>`,
    ...mail.paragraphs.map((paragraph) => `<p dir="auto" style="margin:0 0 16px">${escaped(paragraph)}</p>`),
    ...(rows.length > 0
      ? [`<table style="border-collapse:collapse;margin:0 0 16px">${rows.join('')}</table>`]
      : []),
    ...(button
      ? [
          `<p style="margin:0 0 8px"><a href="${escaped(button.url)}" style="${STYLE.button}">${escaped(button.label)}</a></p>`,
          `<p style="${STYLE.small}">Or open this address: ${escaped(button.url)}</p>`,
        ]
      : []),
    `<p style="${STYLE.small};padding-top:16px;border-top:1px solid #d1d5db">${escaped(footer)}</p>`,
  ]
  return `<!doctype html>
<html lang="en" dir="ltr">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(mail.subject)}</title></head>
<body style="${STYLE.body}">
<div style="${STYLE.card}">
${parts.join('\n')}
</div>
</body>
</html>
`
}

/** Line breaks and other control characters, and the characters that embed, override or isolate a direction. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u206F]+/gu

/** Text of a user for a header or a line of text. */
export function oneLine(text: string): string {
  return text.replace(CONTROLS, ' ').trim()
}

function cut(text: string, most: number): string {
  const characters = [...text]
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text
}

/** The blocks of scripts that are written from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFF\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u

/** FIRST STRONG ISOLATE … POP DIRECTIONAL ISOLATE. */
function isolated(text: string): string {
  return RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
