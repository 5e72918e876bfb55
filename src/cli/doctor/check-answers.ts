import type { CodexHome } from '../../codex/codex-home.ts'
import type { CodexBinary } from '../../codex/find-codex.ts'
import type { Settings } from '../../settings/schema.ts'
import type { CodexAnswers } from './ask-codex.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** What the answers were got with. */
interface Asked {
  codex: CodexBinary
  home: CodexHome
  settings: Settings
  platform: NodeJS.Platform
}

/** What codex's answers mean. Pure. */
export function findingsOf(answers: CodexAnswers, asked: Asked): Finding[] {
  const { threadStart } = answers
  if ('failure' in threadStart) {
    // What else it answered, it answered with a configuration that is not the person's.
    const mend = `Correct what codex names, in ${asked.home.path}/config.toml or in the settings of codemachine.`
    return [problem('codex-config', `codex does not start a thread: ${threadStart.failure}`, mend)]
  }
  return [
    ...configFindings(answers.warnings, asked.home),
    modelFinding(threadStart.result),
    loginFinding(answers.accountRead, asked),
    ...sandboxFindings(answers, asked),
  ]
}

function configFindings(warnings: readonly string[], { path }: CodexHome): Finding[] {
  const told = warnings.filter(text => !isAboutSandbox(text))
  if (told.length === 0) return [ok('codex-config', 'codex reads its configuration without a complaint')]
  return told.map(text => warning('codex-config', text, `Correct ${path}/config.toml; the rounds work all the same.`))
}

function modelFinding(threadStart: unknown): Finding {
  const { model, modelProvider, reasoningEffort } = Object(threadStart)
  const effort = typeof reasoningEffort === 'string' ? `, effort ${reasoningEffort}` : ''
  return ok('model', `${model} of ${modelProvider}${effort}`)
}

function loginFinding(answer: CodexAnswers['accountRead'], { codex, home, settings }: Asked): Finding {
  const command = `${codex.source === 'PATH' ? 'codex' : codex.path} login`
  const login = home.owner === 'person' ? command : `CODEX_HOME=${home.path} ${command}`
  const unknown = (why: string) =>
    warning('login', `codex cannot tell whether you are logged in: ${why}`, `Look yourself: ${login} status`)
  if ('failure' in answer) return unknown(answer.failure)
  const { account, requiresOpenaiAuth } = Object(answer.result)
  if (account !== null && account !== undefined) return ok('login', `logged in with ${accountName(account)}`)
  if (requiresOpenaiAuth === false) return ok('login', 'not needed: the provider of the model takes no login of OpenAI')
  if (requiresOpenaiAuth === true) {
    const made = settings.codexHome === 'own' ? login : 'codemachine login'
    return problem('login', 'codex is not logged in.', `Log in: ${made}`)
  }
  return unknown('it answered nothing that is known')
}

function accountName(account: unknown): string {
  const { type, planType } = Object(account)
  if (type === 'apiKey') return 'an API key'
  if (type === 'chatgpt') return typeof planType === 'string' ? `ChatGPT (${planType})` : 'ChatGPT'
  return String(type)
}

function sandboxFindings({ warnings, sandbox }: CodexAnswers, { settings, platform }: Asked): Finding[] {
  if (settings.sandbox === 'danger-full-access') {
    return [ok('sandbox', 'none is used: the setting sandbox is "danger-full-access"')]
  }
  const told = warnings
    .filter(isAboutSandbox)
    .map(text => warning('sandbox', text, "Install bubblewrap with the system's package manager, such as apt or dnf."))
  const { wroteInside, wroteOutside } = sandbox
  if (wroteInside && !wroteOutside) {
    return [...told, ok('sandbox', 'a command can write in its directory, and not beside it')]
  }
  if (wroteOutside) {
    const mend = 'Do not leave an agent alone here, except inside a container or machine that is a sandbox itself.'
    return [...told, problem('sandbox', "codex's sandbox does not hold: a command wrote beside its directory.", mend)]
  }
  const message = `No command runs in codex's sandbox: ${failureOf(sandbox)}`
  return [...told, problem('sandbox', message, sandboxMend(platform))]
}

function isAboutSandbox(text: string): boolean {
  return /bubblewrap|bwrap|sandbox prerequisites/i.test(text)
}

function failureOf(sandbox: CodexAnswers['sandbox']): string {
  if ('failure' in sandbox) return sandbox.failure
  const { exitCode, stderr } = Object(sandbox.result)
  return typeof stderr === 'string' && stderr.trim() !== '' ? stderr.trim() : `it ended with exit code ${exitCode}`
}

function sandboxMend(platform: NodeJS.Platform): string {
  const inContainer = 'in a container or machine that is a sandbox itself, use --sandbox danger-full-access.'
  if (platform !== 'linux') return `See codex's own pages on its sandbox for this system; ${inContainer}`
  return `Install bubblewrap and let users make user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu); ${inContainer}`
}
