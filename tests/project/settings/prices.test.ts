import { describe, expect, test } from 'vitest'
import { openSettings } from './settings-places.ts'

describe('prices', () => {
  test('are tables of the person’s file, one for each model; cached input without a price costs what other input does', async () => {
    await using settings = await openSettings()
    await settings.person('prices.own = { in = 2, out = 3 }\n[prices."gpt-5.5"]\nin = 1.25\ncached = 0.125\nout = 10\n')
    expect((await settings.load()).prices).toEqual([
      { model: 'own', in: 2, cached: 2, out: 3 },
      { model: 'gpt-5.5', in: 1.25, cached: 0.125, out: 10 },
    ])
  })

  test.each([
    ['[prices.a]\nin = -1\nout = 2\n', ':2: prices.a.in is -1; use a number from 0 to 1000000, per million tokens.'],
    ['[prices.a]\nin = "free"\nout = 2\n', ':2: prices.a.in is "free"; use a number'],
    ['[prices.a]\nin = 1\n', ':1: prices.a.out is missing; write in and out, per million tokens.'],
    ['[prices]\nin = 1\n', ':2: prices.in is not a table; begin it with a line [prices.in].'],
    [
      '[prices.""]\nin = 1\nout = 1\n',
      ':1: prices."" cannot have this name; use the name of a model, such as [prices."gpt-5.5"].',
    ],
    ['[prices.gpt-5.5]\nin = 1\nout = 1\n', 'a name of a model with a dot stands in quotes: [prices."gpt-5.5"].'],
    [
      '[prices.a]\nin = 1\nout = 1\nper = 2\n',
      ':4: prices.a.per is an unknown key; those of a price are in, cached, out;',
    ],
  ])('that are none are told in one sentence: %s', async (text, said) => {
    await using settings = await openSettings()
    await settings.person(text)
    expect(await settings.sentence({})).toContain(said)
  })

  test('are nothing for a project’s own file to say, and its limit of cost only lowers that of the person', async () => {
    await using settings = await openSettings()
    await settings.person('max_cost = 5\n')
    await settings.project('max_cost = 50\n')
    expect((await settings.load()).settings.maxCost).toBe(5)
    await settings.project('[prices.a]\nin = 0\nout = 0\n')
    expect(await settings.sentence({})).toContain("prices cannot be set by a project's own file;")
  })
})
