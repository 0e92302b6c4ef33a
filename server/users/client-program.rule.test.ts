// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { anyCharacter, fc } from '../test/testkit/property.ts'
import { clientProgram } from './client-program.rule.ts'

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const WINDOWS = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)'
const ANDROID = 'Mozilla/5.0 (Linux; Android 15; Pixel 9)'
const IPHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X)'
const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)'

const KNOWN: [agent: string | undefined, words: string | null][] = [
  [`${WINDOWS} ${WEBKIT} Chrome/140.0.0.0 Safari/537.36`, 'Chrome on Windows'],
  [`${WINDOWS} ${WEBKIT} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`, 'Edge on Windows'],
  [`${WINDOWS} ${WEBKIT} Chrome/140.0.0.0 Safari/537.36 OPR/120.0.0.0`, 'Opera on Windows'],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  [`${ANDROID} ${WEBKIT} Chrome/140.0.0.0 Mobile Safari/537.36`, 'Chrome on Android'],
  [
    `${ANDROID} ${WEBKIT} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`,
    'Samsung Internet on Android',
  ],
  [
    `${ANDROID} ${WEBKIT} Version/4.0 Chrome/140.0.0.0 Mobile Safari/537.36 Instagram 390.0.0`,
    'Instagram on Android',
  ],
  [
    `${IPHONE} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1`,
    'Safari on iPhone',
  ],
  [
    `${IPHONE} AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1`,
    'Chrome on iPhone',
  ],
  [`${MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15`, 'Safari on Mac'],
  [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${WEBKIT} Chrome/140.0.0.0 Safari/537.36`, 'Chrome on ChromeOS'],
  ['curl/8.15.0', 'curl'],
  ['okhttp/5.1.0', 'An app on Android'],
  ['Bazaar/3 (iPhone; iOS 18.5)', 'An app on iPhone'],
  ['node', null],
  ['', null],
  [undefined, null],
]

test('programs and systems are named in plain words', () => {
  for (const [agent, words] of KNOWN) assert.is(clientProgram(agent), words, agent)
})

test('nothing of the text itself is repeated', () => {
  assert.is(clientProgram('You won! https://evil.example \u202E Chrome/1'), 'Chrome')
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), fc.constantFrom(...KNOWN), (text, [agent]) => {
      const words = clientProgram(`${text} ${agent ?? ''}`)
      assert.ok(words === null || /^[A-Z]?[A-Za-z ]{3,40}$/.test(words), words ?? '')
    }),
  )
})

test('a long text costs no time', () => {
  const started = process.cpuUsage()
  clientProgram('Version/1'.repeat(100_000))
  assert.ok(process.cpuUsage(started).user < 100_000)
})

test.run()
