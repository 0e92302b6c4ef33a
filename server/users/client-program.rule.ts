/*
 * What a client calls itself, in words of ours: the text is chosen by the client, and is mailed to addresses that may not be verified.
 */

/** The first that matches: most browsers name those they descend from too. */
const PROGRAMS: readonly [pattern: RegExp, name: string][] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|OPX|OPT)\/|\bOpera\b/, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bUC ?Browser\//, 'UC Browser'],
  [/\bYaBrowser\//, 'Yandex Browser'],
  [/\bFB(?:AN|AV)\/|\[FB/, 'Facebook'],
  [/\bInstagram\b/, 'Instagram'],
  [/\b(?:musical_ly|BytedanceWebview)\b/, 'TikTok'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS)\//, 'Chrome'],
  [/\bVersion\/[\d.]+.* Safari\//, 'Safari'],
  [/^curl\//, 'curl'],
  [/^PostmanRuntime\//, 'Postman'],
]

const SYSTEMS: readonly [pattern: RegExp, name: string][] = [
  [/\bWindows\b/, 'Windows'],
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b|^okhttp\//, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bMac(?:intosh|OS| OS X)\b/, 'Mac'],
  [/\bLinux\b/, 'Linux'],
]

/** Longer ones are not a browser's. */
const MAX_LENGTH = 1000

/** The program and system of a `User-Agent`, such as `Chrome on Windows`; `null` when neither is known. Clients can claim to be any other. */
export function clientProgram(agent = ''): string | null {
  const text = agent.slice(0, MAX_LENGTH)
  const nameIn = (table: typeof PROGRAMS) => table.find(([pattern]) => pattern.test(text))?.[1]
  const [program, system] = [nameIn(PROGRAMS), nameIn(SYSTEMS)]
  if (program === undefined) return system === undefined ? null : `An app on ${system}`
  return system === undefined ? program : `${program} on ${system}`
}
