import { formatCount, formatDayAndTime } from '../../tell/words/numbers.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { shortHash } from '../../workspace/git/commits.ts'
import { headline, lineOf, named } from '../proof/verify-words.ts'
import type { CheckedBundle } from './check.ts'

/** Returns the result of a bundle check in six lines. */
export function describeBundle(checked: CheckedBundle): string {
  const lines = linesOfBundle(checked)
  return lines.map(([name, words]) => `${name}: ${words}\n`).join('')
}

/** Returns a name and an answer for each question that a reader asks about a stranger's evidence. */
export function linesOfBundle(checked: CheckedBundle): [string, string][] {
  const { certificate } = checked
  return [
    ['origin', originOf(checked)],
    ['time', `${formatDayAndTime(Date.parse(certificate.endedAt))}, as the certificate says`],
    ['subject', subjectOf(checked)],
    ['coverage', coverageOf(checked)],
    ['failures', failuresOf(checked)],
    ['who can check it', whoOf(checked)],
  ]
}

/** Returns in one line whether the bundle passed, and if not, why. */
export function outcomeOf({ verdict, unmet, ran, holds }: CheckedBundle): string {
  const found = verdict.kind === 'still-true' || (holds && !ran) ? [] : [headline(verdict)]
  const all = [...(unmet === null ? [] : [unmet]), ...found]
  return all.length > 0
    ? all.join('; ')
    : ran
      ? 'still true'
      : 'its files are here; its commands did not run (--no-run)'
}

function originOf({ signer }: CheckedBundle): string {
  if (signer === null) return 'not signed, so nothing is proved about it'
  const { key, name } = signer
  return name === null
    ? `signed by ${key}; --signers FILE tells whose key that is`
    : `signed by ${oneLine(name, 100)} (${key})`
}

function subjectOf({ same, commit, changed }: CheckedBundle): string {
  const of = commit === null ? '' : ` (commit ${shortHash(commit)})`
  if (same === 'files') return `the files here${of}`
  const differ =
    changed === null || changed.count === 0 ? '' : `; ${formatCount(changed.count, 'file')} changed: ${named(changed)}`
  return same === 'head' ? `HEAD${of}${differ}` : `neither the files here nor HEAD${of}${differ}`
}

function coverageOf({ certificate, notLookedAt }: CheckedBundle): string {
  const { gates, contract } = certificate
  const checks = (contract?.sentences ?? []).flatMap(sentence => sentence.checks).length
  const optional = gates.filter(({ required }) => !required).length
  return [
    formatCount(gates.length - optional, 'required gate'),
    ...(optional === 0 ? [] : [`${optional} optional, which did not run again`]),
    ...(checks === 0 ? [] : [formatCount(checks, 'check')]),
    ...(notLookedAt.count === 0 ? [] : [`not looked at: ${named(notLookedAt)}`]),
  ].join(', ')
}

function failuresOf(checked: CheckedBundle): string {
  const { verdict, gates, unmet } = checked
  if (verdict.kind === 'still-true' && unmet === null)
    return `none: ${gates.map(each => lineOf(each)[0]?.trim()).join('; ')}`
  return outcomeOf(checked)
}

function whoOf({ signer }: CheckedBundle): string {
  const which = signer === null ? 'who has the file' : 'who has the file, and trusts the key'
  return `anybody ${which}: codemachine verify --certificate, in a clone with these commits`
}
