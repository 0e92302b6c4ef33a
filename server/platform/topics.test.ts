// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Topics } from './topics.ts'

test('a topic reaches each of its listeners, once a signal, until they leave', () => {
  const signals = new Topics()
  const heard: string[] = []
  const leave = signals.on('events', () => heard.push('first'))
  signals.on('events', () => heard.push('second'))
  signals.on('clicks', () => heard.push('clicks'))
  signals.send('events')
  leave()
  leave()
  signals.send('events')
  signals.send('no one listens')
  assert.equal(heard, ['first', 'second', 'second'])
})

test('a listener that waits again hears the next signal, not the same one again', () => {
  const signals = new Topics()
  let heard = 0
  const wait = () => {
    const leave = signals.on('events', () => {
      heard += 1
      leave()
      wait()
    })
  }
  wait()
  signals.send('events')
  assert.is(heard, 1)
  signals.send('events')
  assert.is(heard, 2)
})

test.run()
