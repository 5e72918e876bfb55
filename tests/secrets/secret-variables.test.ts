import { describe, expect, test } from 'vitest'
import { secretVariables } from '../../src/secrets/variables.ts'
import { cpuMs } from '../support/cpu-time.ts'

const VALUE = 'x7f-0123456789'

test.each([
  'OPENAI_API_KEY',
  'MY_API_TOKEN',
  'GITHUB_PAT',
  'DB_PASSWORD',
  'PGPASSWORD',
  'MYSQL_PWD',
  'ROOT_PASSWD',
  'GPG_PASSPHRASE',
  'AWS_SECRET_ACCESS_KEY',
  'GOOGLE_CREDENTIALS',
  'SERVICE_CREDENTIAL',
  'AZURE_APIKEY',
  'npm_config__authToken',
  'STRIPE_SECRET',
  'OPENAI_API_KEY2',
  'PASSWORD1',
  'token3',
  'DB_PASS_2',
])('%s is secret', name => {
  expect(secretVariables({ [name]: VALUE })).toEqual([{ name, value: VALUE }])
})

test.each([
  ['KEYBOARD', VALUE],
  ['MONKEY', VALUE],
  ['PATH', VALUE],
  ['TOKENIZERS_PARALLELISM', VALUE],
  ['COMPAT_LEVEL', VALUE],
  ['SSH_AUTH_SOCK', '/run/user/1000/ssh-agent.sock'],
  ['SSH_AUTH_SOCK', VALUE],
  ['SSH_KEY', '/home/a/.ssh/id_ed25519'],
  ['SSH_KEY', '~/.ssh/id_ed25519'],
  ['SSH_KEY', 'C:\\Users\\a\\key.pem'],
  ['PWD', '/home/a/project'],
  ['KEY_FILE', 'config/key.pem'],
  ['KEY_FILE2', 'config/key.pem'],
  ['KEY_FILE_2', 'config/key.pem'],
  ['AUTH0_DOMAIN', 'a-tenant.eu.auth0.com'],
  ['SSH_KEY', '/home/a/work/c++/keys/id_ed25519_of_the_server'],
  ['SSH_KEY', '/usr/local/share/certificates/service/key'],
  ['SSH_KEY', '~person/.ssh/id_ed25519'],
  ['GIT_CREDENTIAL_HELPER', 'store --file x'],
  ['SECRET', 'true'],
  ['SECRET', 'Disabled'],
  ['SECRET', 'short-7'],
  ['POSTGRES_PASSWORD', 'postgres'],
  ['WORDPRESS_DB_PASSWORD', 'wordpress'],
  ['MYSQL_ROOT_PASSWORD', 'mysqlroot'],
  ['ADMIN_PASSWORD', 'Passw0rd'],
  ['ADMIN_PASSWORD', 'admin123'],
  ['SECRET', '        '],
  ['SECRET', ''],
])('%s=%s is none', (name, value) => {
  expect(secretVariables({ [name]: value })).toEqual([])
})

test.each([
  ['a slash at its beginning', 'MY_KEY', '/xUtnFEMI1K7MDENGbPxRfiCYEXAMPLEKEYabc+='],
  ['more slashes and a plus', 'MY_KEY', '/xUtnFEMI/K7MDENG/bPxRfiCY+EXAMPLEKEYabc'],
  ['more slashes and padding', 'MY_KEY', '/xUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEYab=='],
  ['slashes alone, for which its name speaks', 'AWS_SECRET_ACCESS_KEY', '/xUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEYabcd'],
  ['slashes alone, for which its name speaks', 'TF_VAR_secretAccessKey', '/xUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEYabcd'],
])('a key in base64 is no path: %s', (_, name, value) => {
  expect(secretVariables({ [name]: value })).toEqual([{ name, value }])
})

test('a password that begins with ~ is no path', () => {
  expect(secretVariables({ PASSWORD: '~hunter2hunter2' })).toHaveLength(1)
})

describe('an address, whatever the variable is called,', () => {
  const inAddress = (value: string) => secretVariables({ ADDRESS: value }).map(secret => secret.value)
  const TOKEN = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'

  test('is not secret itself, but its password is', () => {
    const env = { DATABASE_URL: 'postgres://app:hunter2hunter2@db.example.org/app', HOME_PAGE: 'https://example.org/a' }
    expect(secretVariables(env)).toEqual([{ name: 'DATABASE_URL', value: 'hunter2hunter2' }])
  })

  test.each([
    `https://${TOKEN}@github.com/a/b`,
    `https://${TOKEN}:@github.com/a/b`,
    `https://${TOKEN}:x-oauth-basic@github.com/a/b`,
    `https://x-access-token:${TOKEN}@github.com/a/b`,
    `git+https://${TOKEN}@github.com/a/b.git`,
  ])('has a token as its user or password: %s', address => {
    expect(inAddress(address)).toEqual([TOKEN])
  })

  test('of a report has a key as its user', () => {
    const key = '0123456789abcdef0123456789abcdef'
    expect(secretVariables({ SENTRY_DSN: `https://${key}@o1.ingest.example.org/42` })).toEqual([
      { name: 'SENTRY_DSN', value: key },
    ])
  })

  test.each(['ssh://git@example.org/a', 'https://a-person@example.org', 'https://the-deploying-machine@example.org'])(
    'has a user who is only a name: %s',
    address => {
      expect(inAddress(address)).toEqual([])
    },
  )

  test.each([
    '{"a":"http://x.example","mail":"a-person-of-2026@x.example"}',
    'http://x.example?mail=a-person-of-2026@x.example',
  ])('without a user may stand before something with an @: %s', text => {
    expect(inAddress(text)).toEqual([])
  })

  test('need not be the only one in it', () => {
    expect(inAddress('redis://:first-password@a:1/0,redis://:second-password@b:1/0 http://c:third-password@d')).toEqual(
      ['first-password', 'second-password', 'third-password'],
    )
  })

  test('has a password that is written in it in another way than it is', () => {
    expect(inAddress('postgres://app:p%40ss-w%2Frd@db')).toEqual(['p%40ss-w%2Frd', 'p@ss-w/rd'])
    expect(inAddress('postgres://app:100%-secret@db')).toEqual(['100%-secret'])
  })

  test('has a default of development as its password, which is no secret', () => {
    expect(inAddress('postgres://postgres:postgres@localhost/app')).toEqual([])
  })

  test('is found in a long variable without delay', () => {
    const before = cpuMs()
    expect(inAddress(`${'a'.repeat(120_000)}${'://'.repeat(40_000)}`)).toEqual([])
    expect(cpuMs() - before).toBeLessThan(1000)
  })
})

describe('a list of HTTP headers', () => {
  const inHeaders = (value: string, name = 'OTEL_EXPORTER_OTLP_HEADERS') =>
    secretVariables({ [name]: value }).map(secret => secret.value)

  test.each(['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'OTEL_EXPORTER_OTLP_METRICS_HEADERS'])(
    'in %s has secret values, each of its own',
    name => {
      expect(inHeaders(`authorization=Bearer ${VALUE}, x-key=k-9876543210==`, name)).toEqual([VALUE, 'k-9876543210=='])
    },
  )

  test('has values that are written in it in another way than they are', () => {
    expect(inHeaders('Authorization=Basic%20dXNlcjpwYXNz%3D%3D')).toEqual(['dXNlcjpwYXNz%3D%3D', 'dXNlcjpwYXNz=='])
  })

  test('may have a line for each header', () => {
    expect(inHeaders(`X-Key: ${VALUE}\nX-Mode: internal\nX-Short: 1`, 'MY_CUSTOM_HEADERS')).toEqual([VALUE])
  })
})
