import highlighter from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { Marked, type Tokens } from 'marked'
import { escapeHtml } from '../pages.ts'

for (const [name, language] of Object.entries({ bash, ini, json, sql, typescript, xml, yaml }))
  highlighter.registerLanguage(name, language)

interface Section {
  anchor: string
  title: string
}

export interface RenderedGuide {
  /** HTML, and safe: the Markdown's own HTML is shown as text. */
  body: string
  /** The second-level headings. */
  sections: Section[]
}

/** The anchor of a heading, as GitHub makes it from the heading's text. */
export function headingAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/**
 * Where a link in a guide leads on the site: `operate.md#x` to that guide's page. `null` for a file of the repository that is
 * no guide, since the site serves no source files. Texts outside of the guides write `docs/guides/operate`.
 */
export function guideLink(href: string, names: readonly string[]): string | null {
  if (/^(https?:\/\/|mailto:|#|docs\/guides)/.test(href)) return href
  const [, name, anchor = ''] = /^([a-z0-9-]+)\.md(#.*)?$/.exec(href) ?? []
  return name !== undefined && names.includes(name) ? `${name}${anchor}` : null
}

/** The pictures that the site serves. */
const DRAWING = /^drawings\/[a-z-]+\.svg$/

/** Renders a guide. `names` are those of all guides, without `.md`. */
export function renderGuide(markdown: string, names: readonly string[]): RenderedGuide {
  const sections: Section[] = []
  const anchors = new Map<string, number>()
  const marked = new Marked({
    renderer: {
      heading({ tokens, text, depth }) {
        const base = headingAnchor(text)
        const repeats = anchors.get(base) ?? 0
        anchors.set(base, repeats + 1)
        const anchor = repeats === 0 ? base : `${base}-${repeats}`
        const title = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1 id="${anchor}">${title}</h1>\n`
        if (depth === 2) sections.push({ anchor, title })
        return `<h${depth} id="${anchor}">${title} <a class="anchor" href="#${anchor}" aria-label="Link to this section">#</a></h${depth}>\n`
      },
      code({ text, lang = '' }) {
        const isKnown = highlighter.getLanguage(lang) !== undefined
        const code = isKnown ? highlighter.highlight(text, { language: lang }).value : escapeHtml(text)
        return `<div class="code"><pre tabindex="0"><code>${code}</code></pre></div>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const target = guideLink(href, names)
        return target === null ? text : `<a href="${escapeHtml(target)}">${text}</a>`
      },
      image({ href, text }) {
        const alt = escapeHtml(text)
        return DRAWING.test(href) ? `<img class="drawing" src="${href}" alt="${alt}">` : alt
      },
      // Tables of several lines in a cell need <br>; comments mark generated parts.
      html({ text }) {
        if (/^<br ?\/?>$/.test(text)) return '<br>'
        return /^<!--[\s\S]*-->\s*$/.test(text) ? '' : escapeHtml(text)
      },
      table({ header, rows }) {
        const labels = header.map(({ text }) => text.replaceAll('`', ''))
        // Narrow screens show the cells of such a row one below the other, each after the first with its label.
        const stacked = labels.length <= 3 && labels.every((label) => label !== '')
        const row = (cells: Tokens.TableCell[], tag: 'th' | 'td') =>
          cells
            .map(({ tokens, align }, n) => {
              const style = align === 'right' ? ' class="right"' : ''
              const label =
                stacked && tag === 'td' && n > 0 ? ` data-label="${escapeHtml(labels[n] ?? '')}"` : ''
              return `<${tag}${style}${label}>${this.parser.parseInline(tokens)}</${tag}>`
            })
            .join('')
        const head = labels.some((label) => label !== '')
          ? `<thead><tr>${row(header, 'th')}</tr></thead>\n`
          : ''
        const body = rows.map((cells) => `<tr>${row(cells, 'td')}</tr>\n`).join('')
        const shape = stacked ? ' class="stacked"' : labels.length > 4 ? ' class="wide"' : ''
        return `<div class="table"><table${shape}>\n${head}<tbody>\n${body}</tbody></table></div>\n`
      },
    },
  })
  return { body: marked.parse(markdown, { async: false }), sections }
}

/** The guide's title as text, and the first sentence below it in HTML. */
export function summarizeGuide(markdown: string): { title: string; summary: string } {
  const [, title = '', summary = ''] = /^# ([^\n]+)\n\n([A-Z`[].*?\.)(?=\s)/s.exec(markdown) ?? []
  const { body } = renderGuide(summary, [])
  return { title: title.replaceAll('`', ''), summary: body.replace(/^<p>|<\/p>\n$/g, '') }
}
