import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../testkit/eventually.ts'

interface BidiMessage {
  id?: number
  type?: 'success' | 'error' | 'event'
  result?: Record<string, unknown>
  message?: string
}

/**
 * A headless Firefox, driven by WebDriver BiDi over its own port: playwright-core drives only its own builds of Firefox, and
 * Debian packages no geckodriver.
 */
export class Firefox {
  readonly #process: ChildProcess
  readonly #profile: string
  readonly #socket: WebSocket
  readonly #pending = new Map<number, (message: BidiMessage) => void>()
  #lastId = 0

  private constructor(process: ChildProcess, profile: string, socket: WebSocket) {
    this.#process = process
    this.#profile = profile
    this.#socket = socket
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as BidiMessage
      if (message.id !== undefined) this.#pending.get(message.id)?.(message)
    }
  }

  /** Starts it with a fresh profile in which `host` is `127.0.0.1:port`. */
  static async start(program: string, host: string, port: number): Promise<Firefox> {
    const profile = mkdtempSync(join(tmpdir(), 'affiliate-firefox-'))
    const settings = {
      'network.dns.localDomains': host,
      'network.socket.forcePort': `443=${port}`,
      'network.captive-portal-service.enabled': false,
      'network.connectivity-service.enabled': false,
      'app.update.enabled': false,
      'browser.safebrowsing.update.enabled': false,
      'datareporting.policy.dataSubmissionEnabled': false,
    }
    const lines = Object.entries(settings).map(
      ([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`,
    )
    writeFileSync(join(profile, 'user.js'), lines.join(''))
    const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port=0']
    const child = spawn(program, args, { env: { ...process.env, HOME: profile } })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    const address = await eventually(() => /ws:\/\/\S+/.exec(output)?.[0])
    const socket = new WebSocket(`${address}/session`)
    await once(socket, 'open')
    const firefox = new Firefox(child, profile, socket)
    await firefox.send('session.new', { capabilities: { alwaysMatch: { acceptInsecureCerts: true } } })
    return firefox
  }

  send(method: string, params: object): Promise<Record<string, unknown>> {
    this.#lastId += 1
    const id = this.#lastId
    return new Promise((resolve, reject) => {
      this.#pending.set(id, ({ type, result = {}, message }) => {
        this.#pending.delete(id)
        if (type === 'error') reject(new Error(`${method}: ${message}`))
        else resolve(result)
      })
      this.#socket.send(JSON.stringify({ id, method, params }))
    })
  }

  /** A visitor's empty profile beside the others. */
  async profile(): Promise<string> {
    return String((await this.send('browser.createUserContext', {})).userContext)
  }

  async tab(profile: string): Promise<FirefoxTab> {
    const { context } = await this.send('browsingContext.create', { type: 'tab', userContext: profile })
    return new FirefoxTab(this, String(context))
  }

  async close(): Promise<void> {
    this.#socket.close()
    this.#process.kill('SIGTERM')
    if (this.#process.exitCode === null) await once(this.#process, 'exit')
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

export class FirefoxTab {
  readonly #firefox: Firefox
  readonly #context: string

  constructor(firefox: Firefox, context: string) {
    this.#firefox = firefox
    this.#context = context
  }

  async open(url: string): Promise<void> {
    await this.#firefox.send('browsingContext.navigate', { context: this.#context, url, wait: 'complete' })
  }

  /** Sets the size of the page, CSS pixels. */
  async resize(width: number, height: number): Promise<void> {
    const viewport = { width, height }
    await this.#firefox.send('browsingContext.setViewport', { context: this.#context, viewport })
  }

  /** The value of an expression that is a text, number, boolean or null. */
  async evaluate(expression: string): Promise<unknown> {
    const answer = await this.#firefox.send('script.evaluate', {
      expression,
      target: { context: this.#context },
      awaitPromise: true,
      userActivation: true,
    })
    if (answer.type !== 'success')
      throw new Error(`${expression}: ${JSON.stringify(answer.exceptionDetails)}`)
    return (answer.result as { value?: unknown }).value ?? null
  }

  /** Waits until the expression has the value. */
  async shows(expression: string, value: unknown): Promise<void> {
    await eventually(
      // A page that is being left cannot be asked.
      () => this.evaluate(expression).catch(() => undefined),
      (found) => found === value,
    )
  }
}
