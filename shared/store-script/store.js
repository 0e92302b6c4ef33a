/*
 * The script of GET /store.js for a store's theme: carries the tracking reference of an affiliate link from the landing page into
 * the order. It runs on other people's pages and in old browsers: ES2020 syntax, no dependency, every failure is silent.
 */
;(() => {
  // The tag may be in the theme twice.
  if (window.affiliateReference) return

  const { dataset = {} } = document.currentScript ?? {}
  // The service fills in its TRACKING_PARAMETER.
  const name = /^[a-z][\w-]{0,39}$/i.test(dataset.parameter ?? '') ? dataset.parameter : 'TRACKING_PARAMETER'
  const keepSeconds = (dataset.days > 0 && dataset.days <= 365 ? dataset.days : 30) * 86400
  const DAY = 864e5

  const FORMS = 'form[action*="/cart/add"]'
  const BUY_NOW = '.shopify-payment-button,shopify-accelerated-checkout'
  const FIELD = `properties[_${name}]`
  // Another script may undo what this one does. After so many attempts in one page view, this one gives in.
  const MAX_WRITES = 10
  const MAX_INPUTS = 99

  /** The reference in the page's URL: known until the page is left, with or without consent. */
  let landed = ''
  /** Undefined until the answer is known. */
  let consent
  let writes = 0
  let inputs = 0
  let lastWrite
  let compareTimer
  let fillTimer
  let landedAt = 0

  const quietly = (work) => {
    try {
      return work()
    } catch {}
  }

  /**
   * A click's id is a UUID of version 7, made in the days that it is kept, with a day for wrong clocks. Anything else is no reference: a
   * forged one from the future must not outlast honest ones.
   */
  const referenceIn = (text) => {
    if (!/^[\da-f]{8}-[\da-f]{4}-7[\da-f-]{21}$/i.test(text)) return ''
    const age = Date.now() - parseInt(text.replace('-', ''), 16)
    return age > -DAY && age < keepSeconds * 1000 + DAY ? text.toLowerCase() : ''
  }

  /** A kept `{ ref, at, seen }`. One from the future is as good as expired. */
  const fresh = (read) =>
    quietly(() => {
      const entry = JSON.parse(read())
      return Math.abs(Date.now() - entry.at) < keepSeconds * 1000 && referenceIn(entry.ref) && entry
    }) || { ref: '', at: 0, seen: '' }

  const kept = () => {
    const one = fresh(() => localStorage.getItem(name))
    const other = fresh(() => decodeURIComponent(document.cookie.match(`(?:^|; )${name}=([^;]*)`)[1]))
    return other.at > one.at ? other : one
  }

  /** The latest visit wins, by the order in which this browser saw the references. */
  const reference = () => (consent && kept().ref) || landed

  const store = (entry, seconds) => {
    quietly(() => (seconds ? localStorage.setItem(name, entry) : localStorage.removeItem(name)))
    quietly(() => {
      // biome-ignore lint/suspicious/noDocumentCookie: Firefox and older browsers have no other way
      document.cookie = `${name}=${encodeURIComponent(entry)};path=/;max-age=${seconds};samesite=lax`
    })
  }

  const write = (ref) => {
    if (writes++ < MAX_WRITES)
      lastWrite = fetch('/cart/update.js', {
        method: 'POST',
        keepalive: true,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ attributes: { [name]: ref } }),
      })
        // A request whose body is not read stays open.
        .then((answer) => answer.text())
        .catch(() => {})
  }

  /** Writes the reference unless the cart has it, or without storage that of a later click. One write at a time: two could create two carts. */
  const compare = () => {
    const ref = reference()
    if (ref)
      Promise.resolve(lastWrite)
        .then(() => fetch('/cart.js'))
        .then((answer) => answer.json())
        .then(({ attributes }) => {
          const held = referenceIn(attributes[name])
          if (consent && kept().ref === ref ? held !== ref : held < ref) write(ref)
        })
        .catch(() => {})
  }

  /** Several changes in a row need one comparison. */
  const compareSoon = () => {
    clearTimeout(compareTimer)
    compareTimer = setTimeout(compare, 200)
  }

  /** Buy-now buttons skip the cart with its attributes, but send the properties in their form. */
  const fillForms = () => {
    const ref = reference()
    fillTimer = 0
    for (const form of document.querySelectorAll(FORMS)) {
      let input = form.querySelector(`[name="${FIELD}"]`)
      if (!input && ref && form.querySelector(BUY_NOW) && inputs++ < MAX_INPUTS) {
        input = document.createElement('input')
        input.type = 'hidden'
        input.name = FIELD
        form.append(input)
      }
      if (ref && input) input.value = ref
      else input?.remove()
    }
    // Forms of apps, for cash on delivery for example, send what stands in a hidden field of the reference's name.
    for (const input of document.querySelectorAll(`[type=hidden][name=${name}]`))
      if (ref || referenceIn(input.value)) input.value = ref
  }

  const setConsent = (allowed) => {
    consent = allowed
    const { ref, at, seen } = kept()
    if (!allowed) store('', 0)
    // An old address that is opened again is no new visit.
    else if (landed && !seen.includes(landed))
      store(
        JSON.stringify({
          // Consent can come after a later visit in another tab.
          ...(at > landedAt ? { ref, at } : { ref: landed, at: landedAt }),
          seen: landed + seen.slice(0, 288),
        }),
        keepSeconds,
      )
    fillForms()
    compareSoon()
  }

  const askConsent = () => {
    const shop = window.Shopify
    const answer = () => setConsent(shop.customerPrivacy.marketingAllowed())
    if (dataset.consent === 'off') setConsent(true)
    else if (shop?.customerPrivacy?.marketingAllowed) answer()
    else if (shop?.loadFeatures)
      shop.loadFeatures(
        [{ name: 'consent-tracking-api', version: '0.1' }],
        (error) => error || quietly(answer),
      )
    // A page without Shopify's consent API.
    else if (document.readyState === 'complete') setConsent(true)
  }

  const readPage = () => {
    const ref = referenceIn(new URLSearchParams(location.search).get(name))
    const isNew = ref && ref !== landed
    if (isNew) landedAt = Date.now()
    landed = ref || landed
    quietly(askConsent)
    fillForms()
    if (isNew && reference() === landed) write(landed)
    else compareSoon()
  }

  const listen = (target, event, work, capture) =>
    target.addEventListener(event, (happened) => quietly(() => work(happened)), capture)

  window.affiliateReference = () => reference() || null

  listen(window, 'pageshow', ({ persisted }) => {
    if (persisted) {
      landed = ''
      writes = inputs = 0
    }
    readPage()
  })
  listen(window, 'storage', ({ key }) => {
    if (key !== name) return
    fillForms()
    compareSoon()
  })
  // The cart may have been checked out in another tab.
  listen(document, 'visibilitychange', () => document.hidden || compareSoon())
  listen(document, 'visitorConsentCollected', askConsent)
  // Fired before the cart changes, with a promise of the change.
  for (const changed of ['attributes', 'lines'])
    listen(document, `shopify:cart:${changed}-update`, ({ promise }) =>
      Promise.resolve(promise).then(compareSoon, compareSoon),
    )
  // Before the theme and its buttons read the form.
  listen(document, 'click', fillForms, true)
  quietly(readPage)
  // Notices the theme's requests, once their answers are read, without touching fetch. Its own, /cart/update, must not count.
  quietly(() =>
    new PerformanceObserver((list) => {
      if (list.getEntries().some((entry) => /\/cart\/(add|clear|change)/.test(entry.name))) compareSoon()
    }).observe({ entryTypes: ['resource'] }),
  )
  // Themes replace their forms.
  quietly(() =>
    new MutationObserver(() => {
      fillTimer = fillTimer || setTimeout(fillForms, 50)
    }).observe(document, { childList: true, subtree: true }),
  )
})()
