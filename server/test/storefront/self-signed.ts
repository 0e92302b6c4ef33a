import { generateKeyPairSync, sign } from 'node:crypto'

/** A fresh certificate for a host that only a browser with `--ignore-certificate-errors` accepts. PEM. */
export function selfSigned(host: string): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = sequence(oid('2a8648ce3d040302')) // ecdsa-with-SHA256
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(host))))) // CN
  const validity = sequence(utcTime('250101000000Z'), utcTime('491231235959Z'))
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const version = der(0xa0, integer(2))
  const body = sequence(version, integer(1), algorithm, name, validity, name, spki)
  const signature = der(0x03, Buffer.of(0), sign('sha256', body, privateKey))
  const cert = sequence(body, algorithm, signature).toString('base64')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${cert.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  }
}

/** A DER element of any length below 64 KiB. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const head =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, Math.floor(length / 256), length % 256]
  return Buffer.concat([Buffer.of(tag, ...head), content])
}

const sequence = (...parts: Buffer[]) => der(0x30, ...parts)
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const integer = (value: number) => der(0x02, Buffer.of(value))
const utcTime = (text: string) => der(0x17, Buffer.from(text))
