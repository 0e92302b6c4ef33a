import type { IncomingHttpHeaders } from 'node:http'
import { isbot } from 'isbot'
import { LRUCache } from 'lru-cache'
import type { ClickKind } from './click.entity.ts'

/** Visitors of one campaign share few browsers, and the pattern behind `isbot` is long. */
const knownAgents = new LRUCache<string, ClickKind>({ max: 2000 })
/** What tells a bot stands in front; a longer one is somebody's attempt to keep the pattern busy. */
const LONGEST_AGENT = 512

/**
 * What followed a link. Browsers say when they fetch ahead of a visit: `Sec-Purpose` (and `Purpose` before it) in
 * Chromium and Firefox, `X-Moz` in older Firefox, `X-Purpose` in Safari's preview. A client without a user agent is no browser.
 */
export function clickKindOf(method: string, headers: IncomingHttpHeaders): ClickKind {
  if (method === 'HEAD') return 'head'
  if (isPrefetch(headers)) return 'prefetch'
  const agent = headers['user-agent']
  return agent ? kindOfAgent(agent.slice(0, LONGEST_AGENT)) : 'bot'
}

function isPrefetch(headers: IncomingHttpHeaders): boolean {
  const purpose = headers['sec-purpose'] ?? headers.purpose ?? headers['x-moz'] ?? headers['x-purpose']
  return purpose !== undefined && /prefetch|prerender|preview/i.test(String(purpose))
}

function kindOfAgent(agent: string): ClickKind {
  const known = knownAgents.get(agent)
  if (known) return known
  const kind = isbot(agent) ? 'bot' : 'visit'
  knownAgents.set(agent, kind)
  return kind
}
