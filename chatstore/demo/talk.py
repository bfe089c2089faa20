"""Short conversations by theme for the demonstration's channels.

A blank line ends a conversation. `A:` names the speaker; `B>` replies to the line before; a tail of ` | 👍 ❤️` lists
possible reactions, ` [loaf.jpg]` an attachment. `{words}` are filled from `WORDS`, with one choice for the whole
conversation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"(?P<who>[A-E])(?P<reply>[:>]) (?P<text>.*?)(?: \[(?P<file>[\w.-]+)\])?(?: \| (?P<emoji>.+))?$")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a conversation: speaker 0–4, text with placeholders, attachment and reactions."""

    speaker: int
    text: str
    is_reply: bool
    attachment: str | None
    emoji: tuple[str, ...]


def parse_talk(text: str) -> tuple[tuple[Line, ...], ...]:
    """Parse the conversations of a theme."""
    return tuple(tuple(_parse_line(line) for line in block.splitlines()) for block in text.strip().split("\n\n"))


def _parse_line(line: str) -> Line:
    found = _LINE.match(line)
    if found is None:
        raise ValueError(f"not a line of talk: {line!r}")
    emoji = tuple((found["emoji"] or "").split())
    return Line(ord(found["who"]) - ord("A"), found["text"], found["reply"] == ">", found["file"], emoji)


WORDS = {
    "name": "Mika Jonas Ayla Priya Tomás Ines Noor Sven Lotte Kofi Yuki Rosa".split(),
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "hour": "09:00 11:30 14:00 17:00 18:30 20:00".split(),
    "n": "2 3 4 5 6 7 8 12 15 20".split(),
    "percent": "65 68 70 72 75 78 80 82".split(),
    "flour": ["rye", "spelt", "whole wheat", "einkorn", "bread flour", "semolina"],
    "loaf": ["country loaf", "seeded rye", "baguettes", "focaccia", "olive loaf", "cinnamon buns", "miche"],
    "island": ["Gull Rock", "Lantern Bay", "the Drowned Stair", "Saltmarsh", "Cape Ember", "Old Harbour"],
    "ship": ["cutter", "sloop", "brigantine", "longboat", "skiff"],
    "boss": ["the Kraken Choir", "Captain Vey", "the Tidemother", "the Glass Leviathan"],
    "version": "1.4.2 1.5.0 1.5.1 1.6.0 1.7.3 1.8.0".split(),
    "board": ["Pico", "ESP32", "Nano", "Feather", "micro:bit"],
    "sensor": ["soil moisture sensor", "light sensor", "temperature probe", "motor driver", "rotary encoder"],
    "material": ["PLA", "PETG", "ABS", "TPU", "birch ply", "walnut", "oak"],
    "tool": ["band saw", "laser cutter", "lathe", "soldering station", "drill press", "big printer"],
    "language": ["Python", "Rust", "TypeScript", "Go", "Elixir"],
    "city": ["Utrecht", "Porto", "Leeds", "Ghent", "Tampere", "Bologna"],
}

GENERAL = """
A: good morning everyone ☀️ | 👋 ☀️
B: morning! coffee first, words later
C: it is {hour} here and I have had two already
A> that explains the typing speed | 😂

A: anyone around on {day}? thinking of a voice hangout at {hour}
B: I can do {hour}
C: bit later would be better for me, but don't wait
A: settled then, {day} {hour}. I'll post the link | 👍 🎉
D: see you there!

A: small win today: finally finished the thing I've been putting off for {n} weeks | 🎉 💪
B: congratulations!! which thing
A> the shelf. it holds books. it is level. I checked three times | ❤️ 😂
C: pictures or it did not happen
A: here you go [shelf.jpg] | 🔥 👏

A: what is everybody listening to this week?
B: still that album {name} posted, can't stop
C: rain sounds, honestly
D: a podcast about lighthouses, {n} episodes in and no regrets | 😂
A> link please, this is my kind of thing
D: https://lighthouse-hours.example/episodes

A: question for the room: tabs pinned or tabs closed?
B: closed. always. I sleep well
C: 214 open. we are not the same | 😂 💀
D> please tell me that is on one machine
C: one window.

A: welcome {name}! introduce yourself whenever you feel like it | 👋
B: hi {name} 👋
C: welcome! the pins have the map of who is who

A: did the newsletter go out already?
B: yes, on {day}. check the spam folder
A> found it, thank you. it thought we were selling boats

A: heads up, I'm travelling to {city} this week and will be slow to answer
B: enjoy! try the little bakery behind the station
C: bring back stories | ✈️ ❤️
"""

GAME = """
A: anyone up for {island} tonight? need {n} more for {boss}
B: in, if we start at {hour}
C: me too. bringing the {ship}
A: perfect, invites at {hour} sharp | ⚓ 👍
D: save me a spot please, home a bit later

A: we finally beat {boss}!!! [victory.png] | 🎉 🔥 👏
B: YES. how many tries?
A> {n}. we stopped counting and then counted again
C: what was your setup?
A: two {ship}s in front, everyone else on the anchor chains

A: is the fog at {island} stronger since {version} or am I imagining things
B: stronger. patch notes say "atmospheric"
C: I steered by sound alone yesterday. it worked until it did not | 😂

A: tip for new players: the lantern oil refills for free at {island}
B: I have played for a year. A YEAR. | 😂 💀
C> we all learned this the hard way
D: pinning that

A: which ship would you take for a first long trip?
B: {ship}, cheap to repair
C: disagree, the {ship} is kinder in storms but slow in fights
A: thanks both, going with the cheap one and hope | 👍

A: the new music at {island} is so good | ❤️
B: the composer is {name} from the dev team, they streamed a session last {day}
A> is there a recording?
B: https://tidewalkers.example/streams/{n}

A: crew of {n} looking for a navigator, relaxed, no shouting
B: what time zone?
A> Europe mostly, evenings around {hour}
B: that fits, count me in | ⚓
"""

BUGS = """
A: game stops loading at 87% after {version}, log attached [client.log]
B: thanks! which graphics driver?
A> the current one, updated on {day}
C: same here, deleting the shader cache helped
A: that did it, thank you | 👍
B: noted as a known problem, a fix is on its way in the next build

A: my {ship} sails backwards when I load a save at {island}
B: …sideways or backwards?
A> backwards. with confidence | 😂
B: can you send the save file?
A: here [ship-backwards.zip]
B: reproduced. thank you, that's a good one | 🐛

A: steps: 1. board the {ship} 2. open the map 3. rotate the device. the map stays upside down
B: reproduced on {version}
C: workaround: close and open the map
B: fixed on the branch, will be in the next build | 🎉

A: sound cuts out near {boss}
B: since when?
A> since {version}, was fine before
B: it runs out of channels, the choir has {n} voices. we'll give it fewer | 😂
"""

ART = """
A: finished the painting of {island} at dusk [dusk.png] | ❤️ 🔥 😍
B: the light on the water!! wow
C: would buy a print
A> I may do a small run, will ask on {day}

A: sketch of {boss}, took about {n} evenings [sketch.jpg] | 🔥 👏
B: the hands are so good
C: how do you do the hatching?
A: fine liner and far too much patience

A: tiny papercraft {ship}, template in the comments [paper-ship.jpg] | ❤️
B: my kids need this today
A> https://tidewalkers.example/papercraft/{n}
B: printed. glue everywhere. everybody happy | 😂 ❤️

A: colour question: warmer or cooler sky? [two-skies.png]
B: cooler, the lantern reads better
C: warm! it feels like coming home
A: going with {name}'s idea and doing both | 😂
"""

NEWS = """
A: **Tidewalkers {version} is out.** Calmer fog, a pier at {island}. https://tidewalkers.example/notes | 🎉 ⚓ ❤️

A: Servers restart on {day} at {hour} for about {n} minutes. Dock before. | 👍

A: The community regatta is on {day}, {hour}. Everyone who finishes gets the striped sail. | ⛵ 🎉

A: Thank you all for the reports this week: {n} of them are fixed in the build that is out now. | ❤️

A: We are looking for {n} volunteers to test the new {ship} before everybody gets it. Answer in #general. | 🙋 ⚓
"""

BREAD = """
A: first {loaf} with {flour}, {percent}% hydration [crumb.jpg] | 😍 🍞 👏
B: that crumb! how long was the bulk?
A> about {n} hours, the kitchen was cold
C: beautiful ear too

A: my dough at {percent}% is soup. what did I do wrong?
B: which flour?
A> {flour}, new brand
B: start at 65 and work up, every brand drinks differently
C: and hold back some water until after the first folds
A: trying again on {day}, thank you | 👍 ❤️

A: does anybody bake {loaf} in a plain tin? no dutch oven here
B: yes, put a second tin on top for the first 20 minutes
C> this works really well
A: genius, ordering nothing then | 😂

A: overnight in the fridge, {n} hours, straight into the oven [loaf.jpg] | 🔥
B: gorgeous blisters
C: you make it look easy
A: behind this loaf stand {n} bricks | 😂

A: recipe: 500 g {flour}, {percent}% water, 20% starter, 2% salt
A: fold four times, fridge overnight, 240 °C covered for 25 min, then 20 open | 📌 ❤️
B: saved, thank you!
C: doubled it for the weekend, works

A: what do you do with too much starter discard?
B: pancakes
C: crackers with rosemary, {n} minutes and gone
D: pancakes AND crackers | 😋
"""

STARTER = """
A: starter is {n} days old and does nothing. is it dead?
B: smell?
A> apples and a bit of paint
B: alive and hungry, feed it twice a day with some {flour}
C: and keep it warmer, 25 degrees does wonders
A: it doubled!!! [jar.jpg] | 🎉 ❤️

A: there is a grey liquid on top
B: only hooch. pour it off or stir it in, then feed
A> phew. its name is {name} by the way | 😂
B: good name for a starter

A: pink streaks on the rim, that's not good, right?
B: no, that one has to go, sorry
C: I can send you some dried flakes of mine
A> that would be lovely, writing to you | ❤️

A: how do you keep it through a holiday of {n} days?
B: stiff dough, fridge, forget about it
C: I dried some on parchment years ago as insurance
"""

GEAR = """
A: is the {tool} free on {day} around {hour}?
B: booked until {hour}, yours after that
A: great, I'll bring cake | 🎂

A: which scale do you all use? mine gave up
B: the cheap one from the market, {n} years now
C: anything that shows single grams is fine

A: selling a hardly used stand mixer, pick up in {city} [mixer.jpg]
B: is it still there?
A> yes! message me
B: done, thank you | 🎉

A: blade of the {tool} is dull again
B: new ones come on {day}, until then be gentle
C: put a note on it please, I nearly started a cut | 👍
"""

ELECTRONICS = """
A: my {board} resets whenever the {sensor} switches on
B: how do you power it?
A> from the same 5 V rail
B: brown-out. put 470 µF across it, or a supply of its own
A: that was it, running for {n} hours now | 🎉

A: schematic for the plant watering thing, please be kind [schematic.png]
B: the pull-up on the {sensor} is missing, the rest looks good
C: nice and tidy! label the connectors
A: thank you both, changed | 👍

A: is there a {sensor} left in the drawers?
B: bottom left, the box with the fish sticker
A> found it, put {n} on the shopping list

A: it blinks! [blink.mp4] | 🎉 💡
B: the best moment of every project
C: and now make it talk to the other one
A: one miracle a day please | 😂

A: {board} or {board} for a battery project?
B: whichever sleeps deeper. measure it, the data sheets are optimists | 😂
C: I get {n} months out of two AA cells by waking once an hour
"""

PRINTING = """
A: first layer won't stick with {material}, bed at {percent} degrees
B: cleaned with soap? fingers are grease
A> …I will be back in ten minutes
A: perfect now [first-layer.jpg] | 😂 👍

A: {n} hours in and spaghetti [spaghetti.jpg] | 💀 😂
B: the classic. supports?
A> thought I could do without
C: we all thought that once

A: finished the hinge box in {material} [box.jpg] | 🔥 👏
B: the fit looks great, what tolerance?
A: 0.2 all around, sanded a little
C: file please!
A: https://northside-makers.example/models/{n}

A: who left the {material} in the dryer? it's done since {day}
B: me, sorry! picking it up tonight
"""

CODE = """
A: does somebody have five minutes for a {language} question?
B: just ask :)
A: why does this never end? ```while queue: work(queue[0])```
B: nothing ever leaves the queue
A> I have looked at it for an hour. thank you | 😂 ❤️

A: released the little {language} tool for our door sign, {version} [door-sign.png] | 🎉
B: trying it now
B: works on the {board} too!
A: nice, adding that to the readme

A: what do you all use for small scripts these days?
B: {language}
C: shell, until it has two functions, then {language}
D: {language}, and I'm not sorry | 😂

A: review wanted: https://northside-makers.example/code/{n}
B: left two comments, looks good otherwise
A> both fixed, merging | 🚀

A: note to everyone: the backup runs on {day} nights, save before {hour}
B: thanks for the reminder
"""

MEETUP = """
A: who comes to the meetup in {city} on {day}?
B: me, by train, around {hour}
C: me + {n} loaves | ❤️ 🍞
A: table is booked under {name}

A: thank you all for yesterday, what a nice group [group.jpg] | ❤️ 🎉
B: already looking forward to the next one
C: same! who has the recipe of the soup?

A: does anybody have a car free on {day}? two boxes from {city}
B: I pass there at {hour}
A> you are a hero | 🙌
"""

INTRODUCTIONS = """
A: hi, I'm {name}, from {city}, here for the {tool} mostly | 👋
B: welcome {name}! the induction is on {day} at {hour}
A: signed up, thank you

A: hello everyone, new to all this. I'd like to build something with a {board} | 👋 ❤️
B: welcome! best room in the building for it
C: hi! start with the blinking one, everybody does

A: long time reader, first time writer. I make things of {material} [bowl.jpg] | 😍 👏
B: that bowl! welcome!
"""

THEMES = {
    "general": parse_talk(GENERAL),
    "game": parse_talk(GAME),
    "bugs": parse_talk(BUGS),
    "art": parse_talk(ART),
    "news": parse_talk(NEWS),
    "bread": parse_talk(BREAD),
    "starter": parse_talk(STARTER),
    "gear": parse_talk(GEAR),
    "electronics": parse_talk(ELECTRONICS),
    "printing": parse_talk(PRINTING),
    "code": parse_talk(CODE),
    "meetup": parse_talk(MEETUP),
    "introductions": parse_talk(INTRODUCTIONS),
}

SPAM_LINES = (
    "🔥 premium accounts 90% off, today only → https://deals-for-you.example/p/{n}",
    "hey friend! I doubled my savings in a week, ask me how https://deals-for-you.example/r/{n}",
    "LAST CHANCE free gift cards for the first 500 people: https://deals-for-you.example/g/{n}",
    "who wants a free subscription? no card needed https://deals-for-you.example/s/{n}",
)
RAID_LINES = (
    "🌊🌊🌊 THE WAVE IS HERE 🌊🌊🌊",
    "WAVE WAVE WAVE",
    "join the wave → https://wave-raid.example/{n}",
    "🌊 you can't stop the tide 🌊",
    "@everyone look outside",
)
FLOOD_LINES = (
    "🎁 free sails for everybody, claim within the hour: https://tidewalkers-gifts.example/claim/{n}",
    "🎁 gift number {n} is waiting for you at https://tidewalkers-gifts.example/claim/{n} 🎁",
    "hurry, only a few left! https://tidewalkers-gifts.example/claim/{n}",
    "🎁🎁🎁 https://tidewalkers-gifts.example/claim/{n} works for every player, tell your friends",
)
DISMAY_LINES = (
    "what is going on",
    "mods?",
    "please don't click any of these links",
    "reported, there are more every minute",
    "muting the channel for a bit, wake me when it's over",
    "thank you mods ❤️",
)
