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
type Scheme = (typeof SCHEMES)[number]

/** What playwright-core has behind its interface. */
interface Internals {
  _connection: { toImpl(browser: Browser): { _browserSession: { send: Send } } }
}
type Send = (method: string, params: object) => Promise<object>

/**
 * Firefox as Debian packages it, driven by WebDriver BiDi. It lacks the command without which playwright-core opens no context,
 * the one for color schemes; so one scheme holds for all of its pages.
 */
export async function launchFirefox(scheme: Scheme = 'light', settings: object = {}): Promise<Browser> {
  const browser = await firefox.launch({
    channel: 'moz-firefox',
    executablePath: FIREFOX,
    firefoxUserPrefs: {
      'layout.css.prefers-color-scheme.content-override': SCHEMES.indexOf(scheme) ^ 1,
      'dom.ipc.processPrelaunch.enabled': false,
      'fission.autostart': false,
      ...settings,
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
  { name: 'Chromium', program: CHROMIUM, launch: (_scheme?: Scheme) => launchChromium() },
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

interface BrowserSuiteOptions {
  scheme?: Scheme
  kinds?: readonly Kind[]
}

/** A suite for each browser. All of them get the cases and hooks of the one that is answered. */
export function browserSuite<Context extends { browser: Browser }>(
  name: string,
  { scheme, kinds = BROWSERS }: BrowserSuiteOptions = {},
) {
  const suites = kinds.map((kind) => {
    const it = suite<Context>(`${name} in ${kind.name}`)
    it.before(async (world) => {
      world.browser = await kind.launch(scheme)
    })
    it.after(({ browser }) => browser?.close())
    return onBrowser(kind, it)
  })
  const inAll =
    <Arguments extends unknown[]>(part: (it: Test<Context>) => (...given: Arguments) => void) =>
    (...given: Arguments) => {
      for (const it of suites) part(it)(...given)
    }
  return Object.assign(
    inAll((it) => it),
    { before: inAll((it) => it.before), after: inAll((it) => it.after), run: inAll((it) => it.run) },
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
