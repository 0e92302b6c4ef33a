// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts'

test('loopback addresses of both families', () => {
  for (const address of ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1']) {
    assert.ok(isLoopbackAddress(address), address)
  }
  for (const address of ['', '0.0.0.0', '10.0.0.1', '128.0.0.1', '::', '::2', 'localhost']) {
    assert.not(isLoopbackAddress(address), address)
  }
})

test('host names that can only be this machine', () => {
  for (const name of ['localhost', 'LOCALHOST', '127.0.0.1', '[::1]']) assert.ok(isLoopbackHost(name), name)
  for (const name of ['localhost.example', '127.0.0.1.example', 'attacker.example', '[::2]', '0.0.0.0', '']) {
    assert.not(isLoopbackHost(name), name)
  }
})

test.run()
