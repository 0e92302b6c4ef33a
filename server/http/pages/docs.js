const page = new URL('.', location.href)
const response = await fetch(new URL('openapi.json', page))
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

const reference = () => ({
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
  domNode: document.getElementById('reference'),
  plugins: [reference],
  deepLinking: true,
  docExpansion: 'list',
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
})
