const page = new URL('.', location.href)
const list = document.getElementById('reference')

/** Adds an element to the page's head, before its own style sheets, which change what Swagger UI's says. Waits until it is loaded. */
function load(name, properties) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement(name), properties, {
      onload: resolve,
      onerror: reject,
    })
    document.querySelector('link[rel="stylesheet"]').before(element)
  })
}

const STYLE = 'docs/swagger-ui.css'
const SCRIPT = 'docs/swagger-ui-bundle.js'

// Swagger UI takes a phone seconds to start. There it is fetched, and waits until an operation of the list is opened.
if (matchMedia('(max-width: 640px)').matches && location.hash === '') {
  for (const href of [SCRIPT, STYLE, 'openapi.json']) load('link', { rel: 'prefetch', href }).catch(() => {})
  await new Promise((resolve) => {
    addEventListener('hashchange', resolve, { once: true })
  })
}
list.ariaBusy = 'true'
const [response] = await Promise.all([
  fetch(new URL('openapi.json', page)),
  load('link', { rel: 'stylesheet', href: STYLE }),
  load('script', { src: SCRIPT }),
])
const spec = await response.json()
spec.servers = [{ url: page.href.replace(/\/$/, '') }]
const operations = Object.values(spec.paths).flatMap((path) => Object.values(path))

// "Try it out" fills in examples; an optional parameter's would narrow the call, so the description shows it instead.
for (const operation of operations) {
  for (const parameter of operation.parameters ?? []) {
    if (parameter.required || parameter.example === undefined) continue
    const values = parameter.schema.enum || 'default' in parameter.schema
    if (!values) parameter.description = `${parameter.description ?? ''}\n\nExample: \`${parameter.example}\``
    delete parameter.example
  }
}

// The dialog asks for the account's token only, or an API key in its place: a signature differs with each body.
spec.components.securitySchemes = { bearer: spec.components.securitySchemes.bearer }
for (const operation of operations) {
  operation.security = operation.security?.filter((requirement) => !('apiKey' in requirement))
}

/** Who may call, as the requirements of an operation say. */
function accessOf(requirements) {
  const schemes = requirements.flatMap((requirement) => Object.keys(requirement))
  if (schemes.length === 0) return { state: 'open', text: 'public' }
  if (schemes.some((scheme) => scheme.endsWith('Signature'))) return { state: 'closed', text: 'signature' }
  const optional = requirements.some((requirement) => Object.keys(requirement).length === 0)
  return optional ? { state: 'open', text: 'token optional' } : { state: 'closed', text: 'token' }
}

/** What any operation may answer with. */
const GENERIC = ['401', '413', '415', '429', '500', '503']
const isGeneric = (_, status) => GENERIC.includes(status)

const isAbout = (phrase) => (operation) => {
  const { path, method, operation: facts } = operation.toJS()
  return `${method} ${path} ${facts.summary} ${facts.operationId}`
    .toLowerCase()
    .includes(phrase.toLowerCase())
}

/** A value of the document with what its references lead to. None leads to itself. */
function resolved(value) {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(resolved)
  if (typeof value.$ref === 'string') {
    const target = value.$ref
      .slice(2)
      .split('/')
      .reduce((part, name) => part[name], spec)
    return { ...resolved(target), $$ref: value.$ref }
  }
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, resolved(part)]))
}

const reference = () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        // Swagger UI's own resolver reads the whole document first, which takes a phone many seconds.
        requestResolvedSubtree:
          (_original, { specActions }) =>
          (path) =>
            specActions.updateResolvedSubtree(
              path,
              resolved(path.reduce((part, name) => part?.[name], spec)),
            ),
      },
    },
  },
  fn: {
    opsFilter: (groups, phrase) =>
      groups
        .map((group) => group.update('operations', (list) => list.filter(isAbout(phrase))))
        .filter((group) => group.get('operations').size > 0),
  },
  wrapComponents: {
    // The page has these itself.
    InfoContainer: () => () => null,
    ServersContainer: () => () => null,
    // Swagger UI's own locks show whether a token was entered, and an open one looks like a public operation.
    authorizeOperationBtn: () => () => null,
    OperationSummaryPath:
      (Original, { React }) =>
      (props) => {
        const requirements = props.operationProps.get('security')?.toJS() ?? []
        const { state, text } = accessOf(requirements)
        return React.createElement(
          React.Fragment,
          null,
          React.createElement(Original, props),
          React.createElement('span', { className: `access access-${state}` }, text),
        )
      },
    responses:
      (Original, { React }) =>
      (props) => {
        const generic = props.responses.filter(isGeneric)
        return React.createElement(
          React.Fragment,
          null,
          React.createElement(Original, { ...props, responses: props.responses.filterNot(isGeneric) }),
          generic.size > 0 &&
            React.createElement(
              'details',
              { className: 'generic' },
              React.createElement('summary', null, `Errors of any operation: ${generic.keySeq().join(', ')}`),
              React.createElement(Original, {
                ...props,
                responses: generic,
                tryItOutResponse: undefined,
                displayRequestDuration: false,
              }),
            ),
        )
      },
  },
})

const dark = matchMedia('(prefers-color-scheme: dark)')
const showScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', showScheme)
showScheme()

SwaggerUIBundle({
  spec,
  domNode: list,
  onComplete: () => {
    list.ariaBusy = 'false'
    // The page has a main landmark.
    list.querySelector('main')?.setAttribute('role', 'none')
  },
  plugins: [reference],
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
})
