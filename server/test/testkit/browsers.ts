import { accessSync, constants } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium, firefox } from 'playwright-core'
import { suite, type Test } from 'uvu'
import { GIVE_UP_MS } from './eventually.ts'

const CHROMIUM = '/usr/bin/chromium'
const FIREFOX = process.env.FIREFOX ?? '/usr/bin/firefox-esr'
const CHROMIUM_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export const hasChromium = isThere(CHROMIUM)

/** A browser with nothing remembered. */
export function launchChromium(...flags: string[]): Promise<Browser> {
  const args = [...CHROMIUM_FLAGS, ...flags]
  return chromium.launch({ executablePath: CHROMIUM, args, downloadsPath: DOWNLOADS, timeout: GIVE_UP_MS })
}

/** Where pages' files are saved. */
export const DOWNLOADS = join(tmpdir(), `affiliate-downloads-${process.pid}`)

export const SCHEMES = ['light', 'dark'] as const

interface LaunchOptions {
  /** The color scheme that pages prefer, for a browser in which a context cannot say it. */
  scheme?: (typeof SCHEMES)[number]
  /** A host whose port 443 is this port of 127.0.0.1. */
  host?: { name: string; port: number }
}

/** What playwright-core has behind its interface. */
interface Internals {
  _connection: { toImpl(browser: Browser): { _browserSession: { send: Send } } }
}
type Send = (method: string, params: object) => Promise<object>

/**
 * Firefox as it is packaged, driven by WebDriver BiDi. It lacks the command without which playwright-core opens no context, the one for
 * color schemes; so one scheme holds for all of its pages.
 */
async function launchFirefox({ scheme, host }: LaunchOptions): Promise<Browser> {
  const browser = await firefox.launch({
    channel: 'moz-firefox',
    executablePath: FIREFOX,
    firefoxUserPrefs: {
      'layout.css.prefers-color-scheme.content-override': scheme === 'dark' ? 0 : 1,
      ...(host && { 'network.dns.localDomains': host.name, 'network.socket.forcePort': `443=${host.port}` }),
    },
    env: { ...process.env, HOME: tmpdir() },
    downloadsPath: DOWNLOADS,
    timeout: GIVE_UP_MS,
  })
  const session = (browser as Browser & Internals)._connection.toImpl(browser)._browserSession
  const send = session.send.bind(session)
  session.send = async (method, params) =>
    method === 'emulation.setMediaFeaturesOverride' ? {} : send(method, params)
  return browser
}

/** The browsers in which pages are proven. */
export const BROWSERS = [
  {
    name: 'Chromium',
    program: CHROMIUM,
    launch: ({ host }: LaunchOptions) =>
      launchChromium(...(host ? [`--host-resolver-rules=MAP ${host.name}:443 127.0.0.1:${host.port}`] : [])),
  },
  { name: 'Firefox', program: FIREFOX, launch: launchFirefox },
]
type Kind = (typeof BROWSERS)[number]

/** A suite that needs the browser; where there is none, one skipped test that says so. */
export function onBrowser<Context>({ name, program }: Kind, it: Test<Context>): Test<Context> {
  if (isThere(program)) return it
  console.log(`\nskipped: there is no ${name} at ${program}`)
  const without = suite<Context>(`without ${name}`)
  without.skip()
  return without
}

/** A suite for each browser. All of them get the cases and hooks of the one that is answered. `prepare` says how to launch the browser. */
export function browserSuite<Context extends { browser: Browser }>(
  name: string,
  prepare: (world: Context) => LaunchOptions | Promise<LaunchOptions> = () => ({}),
  kinds = BROWSERS,
) {
  const suites = kinds.map((kind) => {
    const it = suite<Context>(`${name} in ${kind.name}`)
    it.before(async (world) => {
      world.browser = await kind.launch(await prepare(world))
    })
    it.after(({ browser }) => browser?.close())
    return { kind, it }
  })
  const inAll =
    <Arguments extends unknown[]>(part: (it: Test<Context>) => (...given: Arguments) => void) =>
    (...given: Arguments) => {
      for (const { it } of suites) part(it)(...given)
    }
  return Object.assign(
    inAll((it) => it),
    {
      before: inAll((it) => it.before),
      after: inAll((it) => it.after),
      run() {
        for (const { kind, it } of suites) onBrowser(kind, it).run()
      },
    },
  )
}

export function isThere(program: string): boolean {
  try {
    accessSync(program, constants.X_OK)
    return true
  } catch {
    return false
  }
}
