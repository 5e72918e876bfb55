import { expect, test } from 'vitest'
import { message, reply } from '../../../../src/demo/model/reply.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { askHuman, openRealTeamScene, plans, runShell, works } from '../../../support/team-scene.ts'

const MAIL = 'mk_7Hq2.vN8x-Lw41'
const STRIPE = '/sk_live_4eC39HqLyjWDarjtT1zdp7dc'

const asksFor = (key: string, question: string) => [
  [askHuman(key, { question }), reply(message('I wait for it.'))],
  [runShell(`echo "with $${key}"`, key), works()],
]

promise('T41')
promise(
  'T42',
  'On the screen a team is begun, its plan accepted, its secrets given, there and from a screen that watches',
)
test('a team is begun with /team and its plan accepted; of secrets that are typed there and from a screen that watches nothing is seen or kept; the start screen comes back', async () => {
  await using scene = await openRealTeamScene({
    planner: [[plans('Send mail.', 'Charge a card.')]],
    worker: { 1: asksFor('MAIL_KEY', 'Which key of the mailer?'), 2: asksFor('STRIPE_KEY', 'Which key of Stripe?') },
  })
  await using terminal = startInEmulator(scene.place, [], { columns: 60, rows: 16 })
  await terminal.until('keys')
  terminal.type('/team charge cards')
  await terminal.until('› /team charge cards')
  terminal.press('enter')
  await terminal.until('The plan has 2 steps. Carry it out?')
  terminal.type('/team another one')
  await terminal.until('› /team another one')
  terminal.press('enter')
  await terminal.untilInAll(`codemachine team -C ${scene.place.directory} 'another one'`.slice(0, 40))
  terminal.press('esc')
  await terminal.until(/❯ 1\. Carry it out/)
  terminal.press('enter')

  await terminal.until(/❯ 1\. Give it/)
  terminal.press('enter')
  await terminal.until('The value of MAIL_KEY')
  const empty = terminal.screen().slice(-4)
  terminal.type(MAIL)
  terminal.press('ctrl+l')
  await terminal.until('The value of MAIL_KEY')
  expect(terminal.screen().slice(-4)).toEqual(empty)
  terminal.press('enter')
  await terminal.untilInAll('the secret MAIL_KEY is stored')
  await terminal.untilInAll('with [secret MAIL_KEY]')

  await terminal.until(/❯ 1\. Give it/)
  terminal.press('enter')
  await terminal.until('The value of STRIPE_KEY')
  terminal.type(STRIPE.slice(0, 16))
  await using other = startInEmulator(scene.place, ['watch', '-C', scene.project()], { columns: 80, rows: 24 })
  await other.until(/❯ 1\. Give it/)
  other.press('enter')
  await other.until('The value of STRIPE_KEY')
  other.paste(STRIPE)
  other.press('enter')
  await terminal.until('This question is closed.')
  terminal.type(STRIPE.slice(16))
  terminal.press('enter')
  await terminal.untilInAll('with [secret STRIPE_KEY]')
  await terminal.untilInAll(/session \S+ ended/)
  await terminal.until('Type a goal')
  terminal.press('ctrl+d')
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  await other.ended
  for (const value of [MAIL, STRIPE.slice(2, 14), STRIPE.slice(-12)]) {
    expect(terminal.bytes() + other.bytes()).not.toContain(value)
    expect(scene.findLeaks(value)).toEqual([])
  }
})
