// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataCenterCheck } from './data-centers.ts'

test('rented servers differ from homes and mobile carriers', () => {
  const isDataCenter = dataCenterCheck(['203.0.113.0/24', '198.51.100.7', '2001:db8::/32'])
  const rented = [
    '52.95.110.1',
    '34.100.2.3',
    '159.65.4.5',
    '95.216.1.1',
    '2a01:4f9:c010::1',
    '::ffff:52.95.110.1',
  ]
  const further = ['203.0.113.99', '198.51.100.7', '2001:db8:1::5', '[2001:db8::1]:443']
  for (const address of [...rented, ...further]) assert.ok(isDataCenter(address), address)
  // Jazz, Zong, Telenor and Ufone, PTCL at home, and what is no address.
  const carriers = [
    '39.32.10.1',
    '119.160.56.1',
    '37.111.128.1',
    '103.255.4.1',
    '182.176.1.1',
    '2400:adc5::1',
  ]
  for (const address of [...carriers, '198.51.100.8', '127.0.0.1', 'unknown', '']) {
    assert.not.ok(isDataCenter(address), address)
  }
})

test.run()
