// database: none
import { stripVTControlCharacters } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createLog, type Logger } from './log.ts'

/** What a terminal of this width is sent by `work`. */
function atTerminal(columns: number, work: (log: Logger) => void): string {
  let written = ''
  const write = (text: string) => {
    written += text
    return true
  }
  work(createLog('info', { isTTY: true, columns, write } as unknown as NodeJS.WriteStream))
  return written
}

test('a terminal shows time, level and message, with the fields below', () => {
  const shown = atTerminal(60, (log) => {
    log.warn({ domain: 'chenab-lawn.myshopify.com', refused: 12, job: { id: 7 } }, 'webhooks refused')
    log.debug('not at this level')
  })
  const [first = '', ...below] = stripVTControlCharacters(shown).trimEnd().split('\n')
  assert.match(first, /^\d\d:\d\d:\d\d warn {2}webhooks refused$/)
  assert.equal(below, [
    '               domain chenab-lawn.myshopify.com  refused 12',
    '               job {"id":7}',
  ])
})

test('an error is shown with its stack, its code and its cause', () => {
  const error = Object.assign(new Error('disk is full', { cause: new Error('no space') }), { code: 'ENOSPC' })
  const shown = stripVTControlCharacters(atTerminal(80, (log) => log.error({ err: error }, 'bug')))
  assert.match(shown, /error bug\n +Error: disk is full/)
  assert.match(shown, /\n +at .*log\.test\.ts/)
  assert.match(shown, /no space/)
  assert.match(shown, /ENOSPC/)
})

test('values from outside cannot steer the terminal or forge a line', () => {
  const hostile = 'a\u001b[2Jb\n12:00:00 info  forged\u202e'
  const error = new Error(hostile)
  const shown = atTerminal(80, (log) => {
    log.info({ [hostile]: hostile, nested: { value: hostile } }, hostile)
    log.error({ err: error }, 'bug')
    log.error({ err: hostile }, 'bug')
  })
  assert.not(shown.includes('\u001b[2J') || shown.includes('\u202e'))
  for (const line of stripVTControlCharacters(shown).trimEnd().split('\n')) {
    assert.match(line, /^(\d\d:\d\d:\d\d (info|error) | {15})/)
  }
})

test.run()
