import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isbot } from 'isbot'
import { LRUCache } from 'lru-cache'
import type { ClickKind } from './click.entity.ts'

interface KnownAgent {
  kind: ClickKind
  mark: string
}

/** Visitors of one campaign share few browsers, and the pattern behind `isbot` is long. */
const knownAgents = new LRUCache<string, KnownAgent>({ max: 2000 })
/** The mark of a bot is at the start; a longer text would only keep the pattern busy. */
const LONGEST_AGENT = 512

/**
 * What followed a link. Browsers say when they fetch ahead of a visit: `Sec-Purpose` (and `Purpose` before it) in
 * Chromium and Firefox, `X-Moz` in older Firefox, `X-Purpose` in Safari's preview. `embedded`: the browser loads the link as an
 * image, script, frame or the like (Fetch Metadata, https://www.w3.org/TR/fetch-metadata/), so a page opened it without a visitor.
 * A client without a user agent is no browser.
 */
export function clickKindOf(method: string, headers: IncomingHttpHeaders): ClickKind {
  if (method === 'HEAD') return 'head'
  if (isPrefetch(headers)) return 'prefetch'
  if (isEmbedded(headers)) return 'embedded'
  const agent = headers['user-agent']
  return agent ? knownAgent(agent).kind : 'bot'
}

/** A few letters that tell user agents apart, without hashing one each time. */
export function agentMarkOf(agent: string | undefined): string {
  return agent ? knownAgent(agent).mark : ''
}

function isPrefetch(headers: IncomingHttpHeaders): boolean {
  const purpose = headers['sec-purpose'] ?? headers.purpose ?? headers['x-moz'] ?? headers['x-purpose']
  return purpose !== undefined && /prefetch|prerender|preview/i.test(String(purpose))
}

/** Older browsers do not send `Sec-Fetch-Dest`; pages cannot set or remove it. */
function isEmbedded(headers: IncomingHttpHeaders): boolean {
  const destination = headers['sec-fetch-dest']
  return destination !== undefined && destination !== 'document'
}

function knownAgent(agent: string): KnownAgent {
  const front = agent.slice(0, LONGEST_AGENT)
  const known = knownAgents.get(front)
  if (known) return known
  const found: KnownAgent = {
    kind: isbot(front) ? 'bot' : 'visit',
    // Of the text alone: an agent that was pushed out and comes back must get the same again.
    mark: hash('sha256', front, 'base64url').slice(0, 8),
  }
  knownAgents.set(front, found)
  return found
}
