//! The tool `ask_question` (SPEC 3.2): several questions at once, each with choices, and each
//! open to the person's own words.

use super::{ToolOffer, reading};
use serde_json::{Value, json};

mod fit;
mod read;

pub use fit::{fit, fit_one, gather};
pub use read::read;

/// The tool's name, which no tool of an agent may bear.
pub const NAME: &str = "ask_question";

/// The tool as the model is offered it.
pub fn offer() -> ToolOffer {
    let text = |description: &str| json!({"type": "string", "description": description});
    let choice = json!({
        "type": "object",
        "properties": {
            "label": text("What the person reads on the button."),
            "value": text("What you get back when it is chosen; unique within its question."),
            "description": text("Optional: a line about what choosing it means.")
        },
        "required": ["label", "value"]
    });
    let question = json!({
        "type": "object",
        "properties": {
            "id": text("Your name for the question, such as `priority`; unique in the call."),
            "question": text("The question as the person reads it."),
            "header": text("Optional: a title of one or two words."),
            "multiple": {
                "type": "boolean",
                "description": "Optional: true lets the person choose more than one."
            },
            "choices": {
                "type": "array",
                "minItems": 1,
                "maxItems": reading::MOST_ENTRIES,
                "items": choice,
                "description": "The likely answers. Do not add one such as `Other`: the person \
                    can always answer in their own words."
            }
        },
        "required": ["id", "question", "choices"]
    });
    ToolOffer {
        name: NAME.to_owned(),
        description: "Asks the person you work for one or more questions, and waits for the \
            answers. The result is {\"answers\":[{\"questionId\",\"answer\",\"choice\"?,\
            \"choices\"?,\"custom\"?}]}, one entry for each question in your order: `choice` is \
            the chosen value (`choices` with `multiple`), `custom: true` says that `answer` is \
            the person's own text."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": reading::MOST_ENTRIES,
                    "items": question
                }
            },
            "required": ["questions"]
        }),
    }
}

/// What the instructions of an agent that lists this tool are extended with (SPEC 2).
pub fn instructions() -> &'static str {
    "Use ask_question when information that you need is missing and only the person can give \
     it.\n\
     Ask several questions in one ask_question call when you need several answers.\n\
     Use choices for bounded decisions.\n\
     The person can always give a custom answer beside the choices.\n\
     After the person answers, continue with the confirmed values."
}

/// How many questions `input` asks, as [`read()`] gave it.
pub fn questions(input: &Value) -> u32 {
    let asked = input.get("questions").and_then(Value::as_array);
    asked.map_or(0, |asked| u32::try_from(asked.len()).unwrap_or(u32::MAX))
}

/// What the tool answers the model: the answers as JSON, as [`fit()`] filled them in.
pub fn tells(data: &Value) -> String {
    data.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offer_says_what_the_reading_takes() {
        let offer = offer();
        assert_eq!(offer.name, "ask_question");
        assert_eq!(crate::ask::input::check_schema(&offer.parameters), Ok(()));
        let input = json!({"questions": [{
            "id": "p",
            "question": "How urgent?",
            "choices": [{"label": "Low", "value": "low"}]
        }]});
        assert_eq!(
            crate::ask::input::check_input(&offer.parameters, &input),
            Ok(())
        );
        assert_eq!(read(&input), Ok(input.clone()));
        assert_eq!(questions(&input), 1);
    }

    #[test]
    fn the_instructions_say_all_five_things() {
        for part in [
            "missing",
            "one ask_question call",
            "choices for bounded decisions",
            "always give a custom answer",
            "confirmed values",
        ] {
            assert!(instructions().contains(part), "{part}");
        }
    }
}
